import { defineTask } from "@carillon/sdk";
import { expect, it } from "vitest";
import { eachKit } from "../../../../test/each-kit.js";

/* Berlin, 2026-10-25: at 01:00Z 03:00 (+02:00) becomes 02:00 (+01:00). */

const FIRST_PASS = Date.parse("2026-10-25T00:30:00Z");
const SECOND_PASS = Date.parse("2026-10-25T01:30:00Z");
const ring = defineTask("ring", { queue: "jobs", handler: () => {} });

const { kit, ops } = eachKit({ types: [ring], start: "2026-10-24T20:00:00Z" });

const put = (schedule: object, more: object = {}) =>
  kit.client.put({
    id: "a",
    type: "ring",
    queue: "jobs",
    schedule: schedule as { calendar: string },
    ...more,
  });
const timezone = "Europe/Berlin";
const runs = async () => {
  const all = await kit.client.runs.list("a");
  return all.map(({ nominal }) => new Date(nominal).toISOString().slice(0, 16)).sort();
};

const FIXED = [
  { calendar: "*-*-* 02:30", timezone },
  { cron: "30 2 * * *", timezone },
];

it.each(FIXED)("%j runs once, even if it is resumed in the second pass", async (schedule) => {
  await put(schedule);
  await kit.advanceTo("2026-10-25T01:05:00Z");
  await kit.client.pause("a");
  await kit.advance("5m");
  await kit.client.resume("a");
  await kit.advanceTo("2026-10-26T12:00:00Z");
  expect(await runs()).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
});

it.each(FIXED)("%j runs once, even if it is edited in the second pass", async (schedule) => {
  await put({ ...schedule, jitter: "1s" });
  await kit.advanceTo("2026-10-25T01:05:00Z");
  await put(schedule);
  await kit.advanceTo("2026-10-26T12:00:00Z");
  expect(await runs()).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
});

it("explains a time of the second pass as one that the schedule does not have", async () => {
  await put(FIXED[0]!);
  await kit.advanceTo("2026-10-26T12:00:00Z");
  const explain = (time: number) => ops.occurrences.explain({ id: "a", time });
  expect(await explain(FIRST_PASS)).toMatchObject({ verdict: "enqueued" });
  expect(await explain(SECOND_PASS)).toMatchObject({
    verdict: "no-occurrence",
    why: { code: "not-scheduled" },
    nearest: { before: FIRST_PASS, after: Date.parse("2026-10-26T01:30:00Z") },
  });
});

it("an hourly event runs in both passes, and its put says that systemd would not", async () => {
  const { warnings } = await put({ calendar: "hourly", timezone });
  expect(warnings.map(({ code }) => code)).toContain("SYSTEMD_DIFFERS");
  await kit.advanceTo("2026-10-25T02:30:00Z");
  expect((await runs()).slice(-4)).toEqual(
    [23, 24, 25, 26].map((hour) => new Date(Date.UTC(2026, 9, 24, hour)).toISOString().slice(0, 16)),
  );
});
