import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { previewSchedule } from "@carillon/sdk/schedule";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

/* Every call that computes times takes the same kinds of `from`. */

const HOUR = 3_600_000;
const FROM = Date.parse("2026-03-29T09:30:00Z");
const redis = sharedRedis();
const schedule = { cron: "0 * * * *" };
const daily = { every: "1d", origin: "2026-01-01T08:00:00Z", timezone: "Europe/Berlin" };
let bench: Bench;
let client: Client;

beforeAll(async () => {
  bench = await Bench.open(redis.url);
  client = new Client({ store: bench.store });
});
afterAll(() => bench.close());

type Options = { from?: string | number | Date; count?: number };
const task = { id: "a", type: "noop", queue: QUEUE, schedule };
/** The first time after `from`. */
const CALLS: ReadonlyArray<[name: string, first: (options: Options) => Promise<number | undefined>]> = [
  ["previewSchedule", async (options) => previewSchedule(schedule, { count: 1, ...options }).times[0]?.time],
  [
    "client.validate",
    async (options) => (await client.validate(task, { count: 1, ...options })).next[0]?.nominal,
  ],
  [
    "ops.tasks.validate",
    async (options) =>
      (await operatorOf(client).tasks.validate({ task, count: 1, ...(options as object) })).next[0]?.nominal,
  ],
];

describe.each(CALLS)("%s", (_, first) => {
  it.each([
    ["ms", FROM],
    ["computed ms", FROM + 0.25],
    ["a Date", new Date(FROM)],
    ["ISO 8601 in UTC", "2026-03-29T09:30:00Z"],
    ["ISO 8601 with an offset", "2026-03-29T11:30:00+02:00"],
  ])("takes %s", async (_, from) => {
    expect(await first({ from })).toBe(FROM + HOUR / 2);
  });

  it("takes now if from is missing or undefined", async () => {
    // Redis' clock stands still here.
    const least = Math.min(START, Date.now());
    for (const options of [{}, { from: undefined }] as Options[]) {
      const time = (await first(options))!;
      expect(time).toBeGreaterThan(least);
      expect(time % HOUR).toBe(0);
    }
  });

  it.each([
    "soon",
    "2026-03-29T09:30:00",
    "2026-02-30T00:00:00Z",
    Number.NaN,
    new Date("x"),
    {},
    null,
    true,
    1e17,
  ])("refuses %s", async (from) => {
    await expect((async () => first({ from: from as string }))()).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "from",
    });
  });

  it("refuses an unknown option", async () => {
    await expect((async () => first({ cout: 2 } as object))()).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "cout",
    });
  });

  it.each([-1, 1.5, 10_001, "2"])("refuses the count %s", async (count) => {
    await expect((async () => first({ count: count as number }))()).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "count",
    });
  });
});

it("previewSchedule takes text for intervals of the calendar, and needs no options", () => {
  const [first] = previewSchedule(daily, { from: "2026-03-29T09:30:00Z", count: 1 }).times;
  expect(first?.utc).toBe("2026-03-30T07:00:00Z");
  expect(previewSchedule(daily)).toMatchObject({ times: Array(5).fill({}), exhausted: false });
});
