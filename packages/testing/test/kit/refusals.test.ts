import { AssertionError } from "node:assert";
import { defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../../test/helpers.js";
import { type TestKit, type TestKitOptions, testKit } from "../../src/index.js";

const nothing = z.object({}).loose();
const redis = sharedRedis();
let kit: TestKit;

afterEach(() => kit?.close().catch(() => {}));

const type = (handler: () => void | Promise<void>) =>
  defineTask("work", { queue: "bells", payload: nothing, handler });

async function open(options: TestKitOptions): Promise<TestKit> {
  kit = await testKit({ redis, ...options });
  await kit.client.put({ id: "r", type: "work", queue: "bells", schedule: { every: "1m" } });
  return kit;
}

describe("a failed expectation", () => {
  it("prints the expectation and the events as a table", async () => {
    await open({ types: [type(() => kit.sleep("90s"))] });
    await kit.advance("3m");
    const error = await kit
      .expect("r")
      .fired(3)
      .then(
        () => undefined,
        (reason: unknown) => reason,
      );
    expect(error).toBeInstanceOf(AssertionError);
    expect(error).toMatchObject({ actual: 2, expected: 3 });
    expect((error as Error).message).toBe(`occurrences enqueued: expected 3, but got 2.

system/r in queue bells:

time                  decision  reason    run
2026-01-01T00:01:00Z  enqueued  schedule  succeeded from 00:01:00Z to 00:02:30Z
2026-01-01T00:02:00Z  skipped   overlap
2026-01-01T00:03:00Z  enqueued  schedule  running from 00:03:00Z
`);
    expect((error as Error).stack).toContain("refusals.test.ts");
    // The caller that awaited the call has received the error.
    await kit.advance("1s");
  });

  it("asks for the number that JavaScript may leave out", async () => {
    await open({ types: [type(() => {})] });
    const expectation = kit.expect("r") as never as Record<string, (...given: unknown[]) => unknown>;
    const missing = (example: string) =>
      expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(example) });
    expect(() => expectation["fired"]!()).toThrow(missing("fired(2)"));
    expect(() => expectation["skipped"]!()).toThrow(missing("skipped(2)"));
    expect(() => expectation["skipped"]!("overlap")).toThrow(missing('skipped("overlap", 2)'));
    await kit.expect("r").fired(0).skipped("overlap", 0);
  });

  it("counts an occurrence with retries as one", async () => {
    await open({
      types: [
        type(() => {
          throw new Error("no bell");
        }),
      ],
    });
    const rerun = { delay: "10s", max: "10s", jitter: 0 };
    await kit.client.put({ id: "r", type: "work", queue: "bells", schedule: { every: "1m" }, rerun });
    await kit.advance("75s");
    await kit.expect("r").fired(1).firedFor(["1:00"]).ranAt(["1:00", "1:10"]);
  });

  it("has a message of each kind", async () => {
    await open({
      types: [
        type(() => {
          throw new Error("no bell");
        }),
      ],
    });
    await kit.advance("2m");
    const all = () => kit.expect("r");
    await all().fired(2).firedAt(["1:00", "2:00"]).outcomes(["failed", "failed"]);
    await expect(all().firedAt(["1:00"])).rejects.toThrow("expected 2026-01-01T00:01:00Z, but got");
    await expect(all().firedFor([])).rejects.toThrow("nominal times enqueued: expected none");
    await expect(all().ranAt(["1:00", "2:01"])).rejects.toThrow("runs started");
    await expect(all().finishedAt(["1:00"])).rejects.toThrow("runs finished");
    await expect(all().skipped("overlap", 1)).rejects.toThrow("(overlap): expected 1, but got 0");
    await expect(all().skipped(1)).rejects.toThrow("occurrences skipped: expected 1, but got 0");
    await expect(all().outcome("succeeded")).rejects.toThrow("expected succeeded, but got failed");
    await expect(all().outcomes(["failed"])).rejects.toThrow("but got failed, failed");
    await expect(all().nextAt("2:00")).rejects.toThrow("next time");
    await expect(all().state("paused")).rejects.toThrow("expected paused, but got scheduled");
    await expect(all().state("paused")).rejects.toThrow("(Error: no bell)");
    await expect(kit.expect("nobody").fired(0)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  it("is reported even if it was not awaited", async () => {
    await open({ types: [type(() => {})] });
    kit.expect("r").fired(7);
    await expect(kit.advance("1m")).rejects.toThrow("expected 7, but got 0");
    kit.expect("r").fired(0);
    await kit.advance("1m");
    kit.expect("r").fired(8);
    await expect(kit.close()).rejects.toThrow("expected 8, but got 1");
    expect(new Date().getFullYear()).toBe(new Date(performance.timeOrigin).getFullYear());
  });

  it("does not count skips that may be forgotten", async () => {
    await open({});
    const { link, keys } = internalsOf(kit.store);
    const skips = Array<string>(200).fill(`overlap ${kit.now} ${kit.now} 1 ${kit.now} node -`);
    await link.ask((client) => client.rpush(keys.queue("bells").ledger("system/r"), ...skips));
    await expect(kit.expect("r").skipped("overlap", 60)).rejects.toThrow("assert more often");
  });
});

describe("time that stands still", () => {
  it("names the handler that waits in real time", async () => {
    await open({ types: [type(() => new Promise(() => {}))], patience: 100 });
    await expect(kit.advance("1h")).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringMatching(
        /still at 2026-01-01T00:01:00Z; for 100ms of real time:\n- job r@\S+ \(work\) of queue bells has not come to an end or to a kit\.sleep/,
      ),
    });
  });

  it("names the job that a foreign worker holds", async () => {
    await open({ worker: false, patience: 100 });
    await kit.bullWorker("bells", async () => {});
    await internalsOf(kit.store).link.ask((client) =>
      client.lpush(`${internalsOf(kit.store).keys.queue("bells").bull}active`, "x"),
    );
    await expect(kit.advance("1m")).rejects.toThrow("not with a worker of this kit");
  });
});

describe("input that is refused", () => {
  it("includes events in the past, and going back", async () => {
    await open({});
    await kit.advance("1m");
    expect(() => kit.at("0:59", () => {})).toThrow("in the past");
    await expect(kit.advanceTo("0:59")).rejects.toThrow("virtual time only goes forward");
  });

  it("includes an unknown reason for skips, for which every claim would be true", async () => {
    await open({});
    const misspelt = "overlaps" as "overlap";
    expect(() => kit.expect("r").skipped(misspelt, 0)).toThrow(
      /^reason: got "overlaps". Use one of .*overlap/,
    );
    await kit.expect("r").skipped("overlap", 0);
  });

  it("includes moving the time of a closed kit", async () => {
    await open({});
    await kit.close();
    await expect(kit.advance("1m")).rejects.toMatchObject({
      code: "CONFLICT",
      message: "this test kit is closed. Open another one.",
    });
  });

  it("includes moving time from a handler", async () => {
    const refused: unknown[] = [];
    await open({
      types: [type(() => kit.advance("1m").catch((error: unknown) => void refused.push(error)))],
    });
    await kit.advance("1m");
    expect(refused).toMatchObject([{ code: "CONFLICT", message: expect.stringContaining("kit.sleep") }]);
    const both = [kit.advance("1m"), kit.advance("1m")];
    await expect(both[1]).rejects.toMatchObject({ code: "CONFLICT" });
    await both[0];
  });

  it("includes scripted events that throw: they end the advance", async () => {
    await open({});
    kit.at("0:30", () => {
      throw new Error("scripted");
    });
    await expect(kit.advance("1m")).rejects.toThrow("scripted");
    expect(kit.now).toBe(Date.parse("2026-01-01T00:00:30Z"));
    await kit.advance("1m");
  });

  it.each([
    [{ node: 3 }, "node: there is no such option. Did you mean nodes?"],
    [{ nodes: 0 }, "nodes: got 0."],
    [{ concurrency: 1.5 }, "concurrency: got 1.5."],
    [{ start: "tomorrow" }, 'start: "tomorrow" is not a time.'],
    [{ start: "2026-01-01T00:00:00" }, "is not a time."],
    [{ queues: ["a b"] }, "queues: got"],
  ])("includes option %j", async (options, message) => {
    const error = await testKit(options as TestKitOptions).catch((reason: unknown) => reason);
    expect((error as Error).message).toContain(message);
    expect(Date.now()).toBeGreaterThan(Date.parse("2026-01-01T00:00:00Z") - 1e12);
    kit = await testKit({ redis });
  });

  it.each(["", "soon", "1.5h", -1, 0.5, Number.NaN])("includes advance(%j)", async (span) => {
    await open({});
    await expect(kit.advance(span)).rejects.toMatchObject({ field: "span" });
  });
});
