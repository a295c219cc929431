import {
  canonicalSchedule,
  compileSchedule,
  describeSchedule,
  previewSchedule,
  scheduleKind,
  scheduleSchema,
} from "@carillon/core";
import { reviewSchedule } from "@carillon/core/internal";
import { expect, it } from "vitest";

const manual = { manual: true } as const;

it("a manual schedule has no times, and is meant so", () => {
  expect(scheduleSchema.parse(manual)).toEqual(manual);
  expect(reviewSchedule(manual)).toEqual({ never: undefined, warnings: [] });
  const compiled = compileSchedule(manual);
  expect([compiled.next(0), compiled.latest(0)]).toEqual([undefined, undefined]);
  expect([scheduleKind(manual), canonicalSchedule(manual)]).toEqual(["manual", "manual"]);
  expect(describeSchedule(manual)).toBe("only when it is triggered");
  expect(previewSchedule(manual, { from: 0, count: 5 })).toMatchObject({ times: [], exhausted: true });
});

it.each<[object, string]>([
  [{ manual: false }, "not true"],
  [{ manual: true, cron: "* * * * *" }, "manual stands alone"],
  [{ manual: true, any: [{ at: 0 }] }, "manual stands alone"],
  [{ manual: true, jitter: "1s" }, "manual stands alone"],
  [{ manual: true, except: [] }, "manual stands alone"],
  [{ any: [{ manual: true }] }, "Unrecognized key"],
  [{ every: "1h", except: [{ manual: true }] }, "Unrecognized key"],
])("%j is refused", (schedule, why) => {
  const { error } = scheduleSchema.safeParse(schedule);
  expect(error?.issues[0]?.message).toContain(why);
});
