import { Client, defineTask, type LiveEvent } from "@carillon/sdk";
import type { StreamEntry } from "@carillon/store";
import { type TestKit, testKit } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../test/helpers.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const work = defineTask("work", {
  queue: QUEUE,
  payload: z.object({ fail: z.boolean().optional(), secret: z.string().optional() }),
  handler: ({ fail }) => {
    if (fail) throw new Error("no");
  },
});

describe("live events", () => {
  const redis = sharedRedis();
  let kit: TestKit;
  const ends = new AbortController();
  beforeAll(async () => {
    kit = await testKit({ types: [work], redis, start: START });
  });
  afterAll(async () => {
    ends.abort();
    await kit.close();
  });

  const collect = (client: Client, after?: string, signal = ends.signal) => {
    const seen: LiveEvent[] = [];
    const ended = (async () => {
      for await (const event of client.events({ after, signal })) seen.push(event);
    })();
    return { seen, ended };
  };
  const kinds = (seen: readonly LiveEvent[]) =>
    seen.map((event) => [event.kind, "task" in event ? event.task.id : ""].join(" ").trim());

  it("report runs, skips and changes by owner, and continue at a listener's position", async () => {
    await kit.client.put(work, { id: "first", schedule: { every: "1h" }, payload: {} });
    const all = collect(kit.client);
    const bound = collect(new Client({ store: kit.store, owner: "acme" }));
    const leaves = new AbortController();
    const left = collect(kit.client, undefined, leaves.signal);
    // The reader has started once it reports the first change.
    let hours = 1;
    await vi.waitFor(
      async () => {
        hours += 1;
        await kit.client.put(work, { id: "first", schedule: { every: `${hours}h` }, payload: {} });
        expect(all.seen.length).toBeGreaterThan(0);
      },
      { timeout: 20_000, interval: 300 },
    );
    await kit.client.put(work, {
      id: "a",
      owner: "acme",
      schedule: { every: "10m" },
      payload: { secret: "xyzzy" },
    });
    await kit.client.put(work, { id: "b", schedule: { every: "10m" }, payload: { fail: true } });
    await kit.advance("11m");
    await kit.client.pause("b");
    await kit.advance("20m");
    await kit.client.resume("b");
    await vi.waitFor(() => expect(kinds(all.seen)).toContain("skipped b"), { timeout: 20_000 });

    expect(all.seen).toContainEqual({
      id: expect.any(String),
      kind: "run-ended",
      task: { queue: QUEUE, owner: "system", id: "b" },
      run: expect.stringContaining("b@"),
      nominal: START + 10 * 60_000,
      started: expect.any(Number),
      finished: expect.any(Number),
      outcome: "failed",
    });
    expect(all.seen).toContainEqual(
      expect.objectContaining({
        kind: "skipped",
        reason: "paused",
        from: START + 20 * 60_000,
        to: START + 30 * 60_000,
      }),
    );
    expect(all.seen).toContainEqual(
      expect.objectContaining({
        kind: "changed",
        change: "pause",
        scope: expect.objectContaining({ id: "b" }),
      }),
    );
    expect(kinds(bound.seen)).toEqual(expect.arrayContaining(["changed", "run-ended a"]));
    expect(
      bound.seen.every(
        (event) => ("task" in event ? event.task.owner : "scope" in event && event.scope.owner) === "acme",
      ),
    ).toBe(true);
    expect(JSON.stringify(all.seen)).not.toContain("xyzzy");

    leaves.abort();
    await left.ended;
    const at = all.seen.findIndex(({ kind }) => kind === "skipped");
    const resumed = collect(kit.client, all.seen[at - 1]?.id);
    await vi.waitFor(() => expect(resumed.seen[0]).toEqual(all.seen[at]));
    const lost = collect(kit.client, "elsewhere-3");
    await vi.waitFor(() => expect(kinds(lost.seen)).toEqual(["reset"]));
  });

  it("report an end once, also if the start is read when the run has ended", async () => {
    const { events } = kit.store;
    const read = events.queue.bind(events);
    let held: StreamEntry[] = [];
    const isEnd = ({ fields }: StreamEntry) => fields["event"] === "completed";
    const spy = vi.spyOn(events, "queue").mockImplementation(async (...args) => {
      const news = await read(...args);
      const before = held;
      held = news.jobs.filter(isEnd);
      return { ...news, jobs: [...news.jobs.filter((one) => !isEnd(one)), ...before] };
    });
    const { seen } = collect(kit.client);
    await kit.client.put(work, { id: "short", schedule: { every: "1h" }, payload: {} });
    await kit.advance("2h");
    await kit.client.pause("short");
    const changes = () => seen.filter(({ kind }) => kind === "changed").length;
    await vi.waitFor(() => expect(changes()).toBe(2), { timeout: 20_000 });
    await vi.waitFor(() => expect(kinds(seen)).toContain("run-ended short"), { timeout: 20_000 });
    const runs = seen.flatMap((event) => (event.kind === "run-ended" ? [event.run] : []));
    expect(runs).toEqual([...new Set(runs)]);
    spy.mockRestore();
  });

  it("refuse a position that is not an id", async () => {
    const events = kit.client.events({ after: 5 as unknown as string });
    await expect(events.next()).rejects.toMatchObject({ code: "INVALID_OPTION", field: "after" });
  });
});
