import { describe, expect, it } from "vitest";
import type { AlertBody } from "../src/internal.js";
import { collect, collectedUntil, isForgotten, nothingCollected, takeDigest } from "../src/storm.js";

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const START = Date.parse("2026-01-01T00:00:00Z");

/** One destination in virtual time: what it is sent, in its order. */
function receiver(rules: { perMinute?: number; quiet?: number; ends?: boolean } = {}) {
  let state = nothingCollected();
  let serial = 0;
  const got: { at: number; digest: boolean; bodies: readonly AlertBody[] }[] = [];
  const it = {
    now: START,
    got,
    state: () => state,
    /** Goes on to a time after the start, ms, and sends each digest when it is due. */
    to(ms: number) {
      // As it is stored.
      state = JSON.parse(JSON.stringify(state));
      while (collectedUntil(state) <= START + ms) {
        it.now = Math.max(it.now, collectedUntil(state));
        const bodies = takeDigest(state, it.now);
        if (bodies.length === 0) break;
        got.push({ at: it.now - START, digest: true, bodies });
      }
      it.now = START + ms;
      return it;
    },
    give(body: AlertBody, id = `${serial}`) {
      serial += 1;
      const { perMinute = 3, ends = true } = rules;
      const quiet = rules.quiet === undefined || it.now >= rules.quiet ? undefined : rules.quiet;
      if (collect(state, { id, body }, it.now, { perMinute, quiet, ends }))
        got.push({ at: it.now - START, digest: false, bodies: [body] });
    },
    fail: (id: string, more: Partial<AlertBody> = {}) => it.give(failed(id, more)),
    recover: (id: string, ...ended: string[]) =>
      it.give({
        ...failed(id, { kind: "recovered" }),
        ended: ended.length ? ended : ["failed"],
        cause: undefined as never,
      }),
    kinds: () =>
      got.map(({ bodies }) => bodies.map(({ kind, alerts = 1 }) => `${alerts} ${kind}`).join(", ")),
  };
  return it;
}

const failed = (id: string, more: Partial<AlertBody> = {}): AlertBody => ({
  kind: "failed",
  namespace: "ns",
  at: 1,
  task: { queue: `q${id.length % 3}`, owner: `o${id.at(-1)}`, id },
  cause: "e75bf74f",
  error: "Error: connect ECONNREFUSED 10.0.0.7:5432",
  link: `https://console/runs/${id}`,
  ...more,
});

describe("a storm", () => {
  it("of one cause is at most five messages in six minutes, and one when it ends", () => {
    const one = receiver();
    for (let n = 0; n < 501; n++) {
      one.to((n * 6 * MINUTE) / 501);
      one.fail(`t${n}`);
    }
    one.to(7 * MINUTE);
    expect(one.got.map(({ at }) => Math.round(at / SECOND))).toEqual([0, 1, 1, 62, 362]);
    for (let n = 0; n < 501; n++) {
      one.to(8 * MINUTE + n * 100);
      one.recover(`t${n}`);
    }
    one.to(3 * HOUR);
    expect(one.got).toHaveLength(6);
    const told = one.got.slice(0, 5).flatMap(({ bodies }) => bodies);
    // Nothing is lost, and nothing is counted twice.
    expect(told.reduce((sum, { alerts = 1 }) => sum + alerts, 0)).toBe(501);
    expect(told[4]).toMatchObject({ kind: "failed", tasks: 501, owners: 10, queues: 3, open: 501 });
    expect(told[4]).toMatchObject({ cause: "e75bf74f", since: START, link: expect.any(String) });
    expect(told[4]?.named).toHaveLength(20);
    expect(told[4]).not.toHaveProperty("task");
    expect(one.got[5]).toMatchObject({
      at: 8 * MINUTE + 50_000 + MINUTE,
      bodies: [{ kind: "recovered", ended: ["failed"], alerts: 501, tasks: 501, open: 0 }],
    });
    // The three that were sent alone are ended one by one too.
    expect(one.got[5]?.bodies[0]?.closed?.map(({ task }) => task?.id)).toEqual(["t0", "t1", "t2"]);
    one.fail("t0");
    expect(one.kinds().at(-1)).toBe("1 failed");
    expect(one.got.at(-1)?.digest).toBe(false);
  });

  it("that goes on is told about ever more seldom", () => {
    const one = receiver();
    for (let minute = 0; minute < 300; minute++) {
      one.to(minute * MINUTE);
      for (let n = 0; n < 5; n++) one.fail(`t${minute}-${n}`);
    }
    const digests = one.got.filter(({ digest }) => digest).map(({ at }) => at / MINUTE);
    expect(digests).toEqual([1, 6, 21, 81, 141, 201, 261]);
  });

  it("of one cause leaves the places of the minute to others", () => {
    const one = receiver();
    for (let n = 0; n < 10; n++) one.fail(`t${n}`);
    one.to(90 * SECOND);
    one.fail("t99");
    one.fail("u", { cause: "00000001" });
    one.fail("v", { kind: "slow", cause: undefined as never });
    expect(one.got.slice(4).map(({ digest, bodies }) => [digest, bodies[0]?.task?.id])).toEqual([
      [false, "u"],
      [false, "v"],
    ]);
  });

  it("of many causes is one digest with a line for each, a minute after the first that was collected", () => {
    const one = receiver();
    for (let n = 0; n < 9; n++) one.fail(`t${n}`, { cause: `0000000${n % 5}` });
    one.to(MINUTE);
    expect(one.kinds()).toEqual([
      ...Array(3).fill("1 failed"),
      "1 failed, 1 failed, 1 failed, 2 failed, 1 failed",
    ]);
    expect(one.got[3]?.at).toBe(MINUTE);
  });

  it("has a bounded number of causes and tasks, and counts the others", () => {
    const one = receiver({ perMinute: 0 });
    for (let n = 0; n < 300; n++) one.fail(`t${n}`, { cause: String(n).padStart(8, "0") });
    for (let n = 0; n < 1_500; n++) one.fail(`u${n}`, { cause: "00000000" });
    one.to(MINUTE);
    const [digest] = one.got;
    expect(digest?.bodies).toHaveLength(101);
    expect(digest?.bodies.reduce((sum, { alerts = 1 }) => sum + alerts, 0)).toBe(1_800);
    expect(digest?.bodies[0]).toMatchObject({ alerts: 1_501, tasks: 1_000 });
    // Recoveries of tasks that it could not name end it too.
    for (let n = 0; n < 1_500; n++) one.recover(`u${n}`);
    one.recover("t0");
    one.to(3 * MINUTE);
    expect(one.got[1]?.bodies.map(({ kind, open }) => [kind, open])).toEqual([["recovered", 0]]);
  });

  it("is told in parts, a minute apart, if a digest would be too large", () => {
    const one = receiver({ perMinute: 0 });
    const error = "\u00fc".repeat(1_000);
    for (let n = 0; n < 60; n++)
      for (let task = 0; task < 30; task++)
        one.fail(`t${n}-${task}${"x".repeat(100)}`, { cause: String(n).padStart(8, "0"), error });
    one.to(10 * MINUTE);
    expect(one.got.map(({ at }) => at / MINUTE)).toEqual([1, 2]);
    const sizes = one.got.map(({ bodies }) => Buffer.byteLength(JSON.stringify(bodies)));
    expect(Math.max(...sizes)).toBeLessThan(210_000);
    expect(one.got.flatMap(({ bodies }) => bodies)).toHaveLength(60);
  });

  it("says how many have not recovered if some never do, and ends nothing", () => {
    const one = receiver();
    for (let n = 0; n < 10; n++) one.fail(`t${n}`);
    one.to(2 * MINUTE);
    for (let n = 0; n < 8; n++) one.recover(`t${n}`);
    one.to(HOUR);
    expect(one.kinds().slice(4)).toEqual(["8 recovered"]);
    expect(one.got[4]).toMatchObject({
      at: 6 * MINUTE,
      bodies: [{ open: 2, tasks: 10, named: ["o8/t8", "o9/t9"] }],
    });
  });

  it("does not end while tasks fail and recover by turns", () => {
    const one = receiver();
    for (let n = 0; n < 10; n++) one.fail(`t${n}`);
    one.to(90 * SECOND);
    for (let n = 0; n < 10; n++) one.recover(`t${n}`);
    for (let turn = 4; turn < 20; turn++) {
      one.to(turn * 30 * SECOND);
      if (turn % 2) one.recover("t0");
      else one.fail("t0");
    }
    one.to(HOUR);
    // The digest of the first minute, one after five more, and the end.
    expect(one.got.slice(3).map(({ at }) => at / SECOND)).toEqual([60, 360, 630]);
    expect(one.kinds().at(-1)).toMatch(/recovered$/);
  });

  it("is told alone again after an hour without alerts", () => {
    const one = receiver();
    for (let n = 0; n < 10; n++) one.fail(`t${n}`);
    one.to(2 * HOUR);
    for (let n = 10; n < 13; n++) one.fail(`t${n}`);
    one.to(3 * HOUR);
    expect(one.got.slice(4).map(({ at, digest }) => [at / MINUTE, digest])).toEqual([
      [120, false],
      [121, true],
    ]);
  });
});

describe("a destination", () => {
  it("without recoveries is not told how many tasks have not recovered, nor of those of a storm before", () => {
    const one = receiver({ ends: false });
    for (let n = 0; n < 10; n++) one.fail(`t${n}`);
    one.to(2 * HOUR);
    for (let n = 20; n < 25; n++) one.fail(`t${n}`);
    one.to(3 * HOUR);
    expect(one.got[3]?.bodies[0]).toMatchObject({ alerts: 7, tasks: 10 });
    expect(one.got[5]?.bodies[0]).toMatchObject({ alerts: 4, tasks: 5 });
    expect(one.got[5]?.bodies[0]).not.toHaveProperty("open");
  });

  it("gets the end of an alert that was sent alone alone, as long as no digest was sent", () => {
    const one = receiver({ perMinute: 5 });
    for (let n = 0; n < 6; n++) one.fail(`t${n}`);
    one.to(30 * SECOND);
    one.recover("t0");
    one.recover("t5");
    one.to(10 * MINUTE);
    const bodies = one.got.flatMap(({ bodies }) => bodies).slice(5);
    expect(bodies.map(({ kind, task, open }) => [kind, task?.id, open])).toEqual([
      ["failed", "t5", 0],
      ["recovered", "t0", undefined],
    ]);
  });

  it("gets alone what fits into the minute, and no digest", () => {
    const one = receiver();
    for (let n = 0; n < 9; n++) {
      one.to(n * 20 * SECOND);
      one.fail(`t${n}`);
    }
    one.to(10 * MINUTE);
    for (let n = 0; n < 9; n++) {
      one.to(10 * MINUTE + n * 20 * SECOND);
      one.recover(`t${n}`);
    }
    expect(one.got.every(({ digest }) => !digest)).toBe(true);
    expect(one.got).toHaveLength(18);
    one.to(20 * MINUTE);
    expect(isForgotten(one.state(), one.now)).toBe(true);
  });

  it("knows an alert that is given again, alone or collected", () => {
    const one = receiver();
    for (let n = 0; n < 5; n++) one.give(failed(`t${n}`), `id${n}`);
    expect(one.got).toHaveLength(3);
    for (let n = 0; n < 5; n++) one.give(failed(`t${n}`), `id${n}`);
    one.to(MINUTE);
    // Alone again: its job has a name, so that it is one.
    expect(one.kinds()).toEqual([...Array(6).fill("1 failed"), "2 failed"]);
  });

  it("that collects all of a minute gets one alert in full, and several as one", () => {
    const one = receiver({ perMinute: 0 });
    one.fail("a");
    one.to(5 * MINUTE);
    for (const id of ["b", "c"]) one.fail(id);
    one.to(10 * MINUTE);
    expect(one.got[0]).toEqual({ at: MINUTE, digest: true, bodies: [failed("a")] });
    expect(one.got[1]).toMatchObject({
      at: 6 * MINUTE,
      bodies: [{ alerts: 2, tasks: 3, named: ["oa/a", "ob/b", "oc/c"] }],
    });
    expect(one.got).toHaveLength(2);
  });

  it("gets what came in a quiet time at its end, with what is over since", () => {
    const one = receiver({ quiet: START + HOUR });
    one.fail("a");
    one.recover("a");
    one.fail("b", { cause: "00000001" });
    one.to(HOUR - 1);
    expect(one.got).toEqual([]);
    one.to(HOUR);
    expect(one.got).toEqual([
      { at: HOUR, digest: true, bodies: [{ ...failed("a"), open: 0 }, failed("b", { cause: "00000001" })] },
    ]);
  });

  it("forgets a day after the last alert, and what it collects never", () => {
    const one = receiver();
    one.fail("a");
    one.to(23 * HOUR);
    expect(isForgotten(one.state(), one.now)).toBe(false);
    takeDigest(one.state(), START + 24 * HOUR);
    expect(isForgotten(one.state(), START + 24 * HOUR)).toBe(true);
    const quiet = receiver({ quiet: START + 48 * HOUR });
    quiet.fail("a");
    quiet.to(48 * HOUR);
    expect(quiet.kinds()).toEqual(["1 failed"]);
  });

  it("gets alerts in time after the clock of Redis went back", () => {
    const mail = receiver({ perMinute: 0 });
    mail.fail("a");
    mail.to(2 * MINUTE).to(-24 * HOUR);
    mail.fail("b");
    mail.to(10 * MINUTE - 24 * HOUR);
    expect(mail.got.map(({ at }) => at)).toEqual([MINUTE, MINUTE - 24 * HOUR]);
  });
});
