import { Client } from "@carillon/sdk";
import { storeOf } from "@carillon/store/internal";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";
import { operatorOf } from "../operator.js";

const redis = sharedRedis();
let client: Client;
beforeAll(async () => {
  client = new Client({ connection: redis.url });
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  await client.close();
});

test("counting a backfill does not block the process", async () => {
  const schedule = { cron: "* * * * * *", start: "2026-01-01T00:00:00Z" };
  await client.put({ id: "a", type: "t", queue: "q", schedule });
  const { schedules } = storeOf(client).calendars;
  const compiled = schedules.get({ owner: "system", id: "a", schedule });
  let [asked, others, othersAtTheEnd] = [0, 0, 0];
  const next = (at: number) => {
    asked += 1;
    setImmediate(() => {
      others += 1;
    });
    othersAtTheEnd = others;
    return compiled.next(at);
  };
  vi.spyOn(schedules, "get").mockReturnValue({ delay: undefined, next } as unknown as typeof compiled);
  // Each read of the clock finds that a turn is over.
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    now += 1_000;
    return now;
  });
  const past = { from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:01:00Z", dryRun: true };
  expect(await operatorOf(client).backfills.start({ id: "a", ...past })).toEqual({
    id: undefined,
    total: 61,
  });
  expect([asked, othersAtTheEnd]).toEqual([61, 60]);
});
