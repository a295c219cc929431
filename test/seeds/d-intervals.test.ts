import { shardOf } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { Stand, task } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

/** Start of each run, in order. */
async function starts(id: string): Promise<number[]> {
  const { runs } = await kit.history(id);
  return runs.flatMap(({ started }) => started ?? []).sort((a, b) => a - b);
}

describe("D1 drifting interval: the next start is counted from the finish", () => {
  it("every 2 minutes after a job of 1 minute starts 3 minutes apart", async () => {
    const type = task(() => kit.sleep("1m"));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "2m", anchor: "finish" }, payload: {} });
    await kit.advance("30m");
    const times = await starts("t");
    expect(times).toHaveLength(10);
    const gaps = times.slice(1).map((time, i) => time - (times[i] as number));
    expect(new Set(gaps)).toEqual(new Set([180_000]));
    await kit.expect("t").skipped(0).fired(10);
  });
});

describe("D2 fixed interval: starts lie on origin + k × interval, slots that a run covers are skipped", () => {
  it("every 15 s with a job of 20 s starts at 0, 30 and 60", async () => {
    const origin = "2026-01-01T00:00:05Z";
    const type = task(() => kit.sleep("20s"));
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "15s", origin }, payload: {} });
    await kit.advanceTo(Date.parse(origin) + 74_999);
    const at = (...seconds: number[]) => seconds.map((s) => Date.parse(origin) + s * 1_000);
    await kit
      .expect("t")
      .ranAt(at(0, 30, 60))
      .firedFor(at(0, 30, 60))
      .skipped("overlap", 2)
      .nextAt(Date.parse(origin) + 75_000);
  });

  it("months are counted from the origin, not from the run before", async () => {
    const type = task();
    kit = await stand.kit({ types: [type], start: "2026-01-30T00:00:00Z" });
    await kit.client.put(type, {
      id: "t",
      schedule: { every: "1 month", origin: "2026-01-31T08:00:00Z" },
      payload: {},
    });
    await kit.advanceTo("2026-06-01T00:00:00Z");
    await kit
      .expect("t")
      .ranAt(
        ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"].map((d) => `${d}T08:00:00Z`),
      );
  });
});

describe("D3 local wall-clock time is kept when summer time comes and goes", () => {
  it("Mondays at 09:00 in Berlin, over both changes of 2022", async () => {
    const type = task();
    kit = await stand.kit({ types: [type], start: "2022-03-15T00:00:00Z" });
    await kit.client.put(type, {
      id: "t",
      schedule: { cron: "0 9 * * 1", timezone: "Europe/Berlin" },
      payload: {},
    });
    await kit.client.put(type, {
      id: "interval",
      schedule: { every: "1 week", origin: "2022-03-14T09:00:00+01:00", timezone: "Europe/Berlin" },
      payload: {},
    });
    await kit.advanceTo("2022-11-15T00:00:00Z");
    const clock = new Intl.DateTimeFormat("en-GB", {
      timeZone: "Europe/Berlin",
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    for (const id of ["t", "interval"]) {
      const times = await starts(id);
      expect(times).toHaveLength(35);
      expect(new Set(times.map((time) => clock.format(time)))).toEqual(new Set(["Mon 09:00:00"]));
      // In UTC the times move by one hour at the clock change, and are a week apart otherwise.
      const utc = times.map((time) => new Date(time).toISOString());
      expect(utc.slice(0, 2)).toEqual(["2022-03-21T08:00:00.000Z", "2022-03-28T07:00:00.000Z"]);
      expect(utc.slice(31, 33)).toEqual(["2022-10-24T07:00:00.000Z", "2022-10-31T08:00:00.000Z"]);
    }
  });
});

describe("D11 tasks change while the nodes run; at one instant the higher priority goes first", () => {
  it("a changed schedule applies from then on, between two runs and during one", async () => {
    const type = task(() => kit.sleep("10s"));
    kit = await stand.kit({ types: [type], nodes: 2 });
    const put = (every: string) => kit.client.put(type, { id: "t", schedule: { every }, payload: {} });
    await put("1m");
    kit.at("02:30", () => put("5m"));
    kit.at("10:05", () => put("1m"));
    await kit.advanceTo("12:00");
    await kit.expect("t").ranAt(["01:00", "02:00", "05:00", "10:00", "11:00", "12:00"]);
  });

  it("a changed priority applies to the next job", async () => {
    const type = task();
    kit = await stand.kit({ types: [type], worker: false });
    const put = (priority: number) =>
      kit.client.put(type, { id: "t", schedule: { every: "1m" }, overlap: "allow", priority, payload: {} });
    const seen: number[] = [];
    await kit.bullWorker("bells", async (job) => void seen.push(job.opts.priority ?? 0));
    await put(7);
    kit.at("01:30", () => put(3));
    await kit.advanceTo("02:00");
    expect(seen).toEqual([7, 3]);
  });

  it("high runs before low at the same instant", async () => {
    const order: string[] = [];
    const type = task(({ occurrence }) => void order.push(occurrence.task));
    kit = await stand.kit({ types: [type], concurrency: 1 });
    await kit.worker.pause();
    // Low priorities come first by name and by order of puts. Priority 0 goes before all.
    for (const [id, priority] of [
      ["a-low", 9],
      ["b-middle", 5],
      ["c-high", 1],
      ["d-first", 0],
    ] as const) {
      await kit.client.put(type, { id, priority, schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    }
    kit.at("02:00", () => kit.worker.resume());
    await kit.advanceTo("03:00");
    expect(order).toEqual(["d-first", "c-high", "b-middle", "a-low"]);
  });
});

describe("D11 at one instant a higher priority goes first into its owner's limit", () => {
  it("the only place is the higher priority's, also one that a put has changed", async () => {
    const order: string[] = [];
    const type = task(({ occurrence }) => void order.push(occurrence.task));
    kit = await stand.kit({ types: [type] });
    const put = (id: string, priority: number, minute: string) =>
      kit.client.put(type, { id, priority, schedule: { at: `2026-01-01T00:${minute}:00Z` }, payload: {} });
    // In one shard, in which names decide without priorities.
    const [first, second, third, fourth] = ["a", "b", "y", "z"].map((letter) =>
      Array.from({ length: 200 }, (_, n) => `${letter}${n}`).find((id) => shardOf(`system/${id}`) === 3),
    ) as [string, string, string, string];
    await put(first, 9, "01");
    await put(third, 1, "01");
    await put(second, 9, "02");
    await put(fourth, 9, "02");
    await operatorOf(kit.client).queues.limit({ queue: "bells", owner: "system", runs: 1 });
    await kit.worker.pause();
    await kit.advanceTo("01:01");
    expect(await placed()).toEqual([third]);
    await kit.worker.resume();
    await kit.advanceTo("01:59");
    expect(order).toEqual([third, first]);
    await put(fourth, 2, "02");
    await kit.worker.pause();
    await kit.advanceTo("02:01");
    expect(await placed()).toEqual([fourth]);
  });

  /** Tasks of the jobs that wait. */
  const placed = async () =>
    (await stand.queue("bells").getJobs(["waiting", "prioritized"])).map(({ data }) => data.occurrence.task);
});

describe("D12 a handler may say when its task runs next", () => {
  it("it runs at that time, once, and its schedule continues", async () => {
    const type = task(({ runNextAt, occurrence }) => {
      if (occurrence.trigger === "schedule" && kit.now === Date.parse("2026-01-01T01:00:00Z"))
        runNextAt("2026-01-01T01:07:30Z");
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, payload: {} });
    await kit.advanceTo("2:30:00");
    await kit.expect("t").ranAt(["1:00:00", "1:07:30", "2:00:00"]).skipped(0).nextAt("3:00:00");
    const { runs } = await kit.history("t");
    expect(runs.map(({ trigger }) => trigger)).toEqual(["schedule", "self", "schedule"]);
  });

  it("a task without further times is not finished before that", async () => {
    const type = task(({ runNextAt, occurrence }) => {
      if (occurrence.trigger === "schedule") runNextAt(kit.now + 60_000);
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { at: "2026-01-01T00:01:00Z" }, payload: {} });
    await kit.advanceTo("01:30");
    await kit.expect("t").state("scheduled");
    await kit.advanceTo("10:00");
    await kit.expect("t").ranAt(["01:00", "02:00"]).state("finished").nextAt(undefined);
  });

  it("a past time means at once, and each run has a key of its own", async () => {
    const keys: string[] = [];
    const type = task(({ runNextAt, occurrence: { trigger, key, nominal } }) => {
      if (trigger === "schedule") return runNextAt("2026-01-01T00:30:00Z");
      keys.push(`${key} ${trigger}`);
      expect(nominal).toBe(Date.parse("2026-01-01T00:30:00Z"));
      if (keys.length === 1) throw new Error("tried again under the same key");
    });
    kit = await stand.kit({ types: [type] });
    const rerun = { delay: "10m", jitter: 0 };
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, rerun, payload: {} });
    await kit.advanceTo("3:30:00");
    await kit
      .expect("t")
      .ranAt(["1:00:00", "1:00:00", "1:10:00", "2:00:00", "2:00:00", "3:00:00", "3:00:00"]);
    expect(keys.map((text) => text.split(" ")[1])).toEqual(["self", "retry", "self", "self"]);
    const [first, again, second, third] = keys.map((text) => text.split(" ")[0] as string);
    expect(again).toBe(first);
    expect(new Set([first, second, third]).size).toBe(3);
    const asked = Date.parse("2026-01-01T00:30:00Z");
    expect(first).toMatch(new RegExp(`^bells/system/t@self-${asked}\\.[^.@]+$`));
  });

  it("runs enqueued together have different keys", async () => {
    const keys: string[] = [];
    const type = task(({ runNextAt, occurrence: { trigger, key } }) => {
      if (trigger === "schedule") runNextAt("2026-01-01T00:30:00Z");
      else keys.push(key);
    });
    kit = await stand.kit({ types: [type] });
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`);
    for (const id of ids) await kit.client.put(type, { id, schedule: { every: "1h" }, payload: {} });
    await kit.advanceTo("3:30:00");
    expect(keys).toHaveLength(3 * ids.length);
    expect(new Set(keys).size).toBe(3 * ids.length);
  });

  it("if concurrent runs ask, the last request counts; the other time is in the skips", async () => {
    const type = task(async ({ runNextAt, occurrence: { trigger, nominal } }) => {
      if (trigger !== "schedule") return;
      const minute = (nominal - Date.parse("2026-01-01T00:00:00Z")) / 60_000;
      await kit.sleep("90s");
      // Requests a run for 00:10, one for 00:20, and one more for the same time.
      runNextAt(`2026-01-01T00:${minute === 1 ? 10 : 20}:00Z`);
    });
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "1m", maxRuns: 3 };
    await kit.client.put(type, { id: "t", schedule, overlap: "allow", payload: {} });
    await kit.advanceTo("30:00");
    await kit.expect("t").ranAt(["1:00", "2:00", "3:00", "20:00"]).state("finished");
    const at = Date.parse("2026-01-01T00:10:00Z");
    expect(await kit.client.runs.skips("t")).toMatchObject([{ reason: "superseded", from: at, to: at }]);
    expect(await explained(kit.client, "t", at)).toMatchObject({ verdict: "skipped" });
  });
});
