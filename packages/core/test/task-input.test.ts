import { readFileSync } from "node:fs";
import {
  parseTask,
  type ScheduleInput,
  scheduleSchema,
  type TaskInput,
  type taskSchema,
} from "@carillon/core";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { SCHEDULE_FIELDS } from "../src/schedule/shape.js";

describe("the type of a task", () => {
  it("equals the input of the schema", () => {
    expectTypeOf<TaskInput>().toEqualTypeOf<z.input<typeof taskSchema>>();
    type Fields<T> = T extends unknown ? keyof T : never;
    const fields: Record<Fields<ScheduleInput>, true> = {
      cron: true,
      calendar: true,
      every: true,
      at: true,
      manual: true,
      any: true,
      timezone: true,
      origin: true,
      dialect: true,
      dst: true,
      anchor: true,
      start: true,
      end: true,
      except: true,
      jitter: true,
      maxRuns: true,
    };
    expect(Object.keys(fields).sort()).toEqual([...SCHEDULE_FIELDS].sort());
  });

  it.each(["task-input.ts", "schedule/input.ts"])("documents each field and its default: %s", (file) => {
    const lines = readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8").split("\n");
    const fields = lines.flatMap((line, at) => (/^ {2}\w+\??: /.test(line) ? [at] : []));
    expect(fields.length).toBeGreaterThan(15);
    for (const at of fields) {
      expect(lines[at - 1], lines[at]).toMatch(/\*\/$/);
      const from = lines.findLastIndex((line, i) => i < at && line.startsWith("  /**"));
      const words = lines.slice(from, at).join(" ");
      // Groups with an interface of their own document their defaults there.
      if (/\?: \w+Input \|/.test(lines[at] ?? "")) continue;
      if (/^ {2}\w+\?: /.test(lines[at] ?? "")) expect(words).toMatch(/Default: /);
    }
  });
});

describe("a duration", () => {
  const task = { id: "t", type: "t", queue: "q" };

  it("may be whole milliseconds in every field, and is stored as text", () => {
    const { definition } = parseTask({
      ...task,
      schedule: { every: 60_000, jitter: 500, except: [{ every: 3_600_000 }] },
      minGap: 1_000,
      timeLimit: 1_500,
      timeLimitGrace: 1,
      linger: 86_400_000,
      alertIf: { noSuccessFor: 7_200_000, notStartedFor: 60_000, slowerThan: "300%", skipsInARow: 3 },
      catchUpLimits: { window: 60_000, every: 250 },
      retry: { delay: 100, max: 5_000 },
      rerun: { delay: 30_000, max: 90_000 },
      crash: { delay: 300_000 },
      retention: { successesFor: 604_800_000, failuresFor: 1 },
    } satisfies TaskInput);
    expect(definition).toMatchObject({
      schedule: { every: "1m", jitter: "500ms", except: [{ every: "1h" }] },
      minGap: "1s",
      timeLimit: "1s500ms",
      timeLimitGrace: "1ms",
      linger: "1d",
      alertIf: { noSuccessFor: "2h", notStartedFor: "1m", slowerThan: "300%", skipsInARow: 3 },
      catchUpLimits: { window: "1m", every: "250ms" },
      retry: { delay: "100ms", max: "5s" },
      rerun: { delay: "30s", max: "1m30s" },
      crash: { delay: "5m" },
      retention: { successesFor: "7d", failuresFor: "1ms" },
    });
  });

  it.each([0, -5, 1.5, Number.NaN, 1e15])("is refused as a number that is not milliseconds: %j", (every) => {
    const refused = expect.objectContaining({ code: "INVALID_DURATION" });
    if (!Number.isNaN(every)) {
      expect(() => parseTask({ ...task, schedule: { every } })).toThrow(refused);
      expect(() => parseTask({ ...task, schedule: { every: "1h" }, linger: every })).toThrow(refused);
    } else expect(scheduleSchema.safeParse({ every }).success).toBe(false);
  });

  it("is refused as text without a unit, with an error that names milliseconds first", () => {
    const said = "Write 60000ms for milliseconds, 60000s for seconds, or m, h, d, w.";
    expect(() => parseTask({ ...task, schedule: { every: "60000" } })).toThrow(said);
    expect(() => parseTask({ ...task, schedule: { every: "1h" }, timeLimit: "60000" })).toThrow(said);
  });

  it("is refused as another type, with an error that says what to give", () => {
    const put = (rest: object) => () => parseTask({ ...task, schedule: { every: "1h" }, ...rest });
    const span = 'Give a text with a unit, "30s", or whole milliseconds.';
    expect(put({ linger: true })).toThrow(`linger: not a duration. ${span}`);
    expect(put({ schedule: { every: true } })).toThrow(`schedule.every: not a duration. ${span}`);
    const at = "schedule.at: not a time. Give ISO 8601 with an offset, a Date, or epoch milliseconds.";
    expect(put({ schedule: { at: true } })).toThrow(at);
    expect(put({ schedule: { every: "1h", start: true } })).toThrow(at.replace("at", "start"));
  });
});
