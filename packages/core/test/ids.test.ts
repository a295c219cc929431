import {
  isRunId,
  itemId,
  itemOf,
  NAME_PATTERN,
  nominalOf,
  processId,
  runId,
  runOfJob,
  tokenOf,
  turnId,
} from "@carillon/core/internal";
import { describe, expect, it } from "vitest";
import fc from "../../../test/fast-check.js";

const letters = (all: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...all), minLength: min, maxLength: max });
const BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz";
// Few characters, so that parts of one id often look like those of another.
const task = fc.oneof(letters("a1._-", 1, 12), letters("abcXYZ019._-", 1, 128));
const nominal = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 8.64e15 }));
const token = fc.oneof(letters("01", 1, 3), letters(BASE36, 13, 13));
const number = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 10_000 }));
const run = fc.record({ task, nominal, token, n: number });
const item = fc.record({ of: run, index: number });

const idOf = (one: { task: string; nominal: number; token: string; n: number }) =>
  runId(one.task, one.nominal, one.token, one.n);

describe("ids", () => {
  it("of a run say its time and its token, and are safe as job ids", () => {
    fc.assert(
      fc.property(run, (one) => {
        const id = idOf(one);
        const rest = one.n === 0 ? "" : `.${one.n.toString(36)}`;
        expect([nominalOf(id), tokenOf(id)]).toEqual([one.nominal, `${one.token}${rest}`]);
        // BullMQ: no colon, not only digits, not one of its key names.
        expect(id).toMatch(/^[A-Za-z0-9._-]+@[A-Za-z0-9.]+$/);
        expect([isRunId(id), runOfJob(id), itemOf(id)]).toEqual([true, id, undefined]);
      }),
    );
  });

  it("of an item say its run and its index, and are no run's", () => {
    fc.assert(
      fc.property(item, ({ of, index }) => {
        const id = itemId(idOf(of), index);
        expect(id).not.toContain(":");
        expect([isRunId(id), runOfJob(id), itemOf(id)]).toEqual([false, idOf(of), { run: idOf(of), index }]);
      }),
    );
  });

  it("are equal only if all their parts are", () => {
    // So few values that most pairs of ids differ in one part only.
    const few = fc.record({
      task: fc.constantFrom("a", "a.1", "a_1", "1"),
      nominal: fc.constantFrom(0, 1, 36),
      token: fc.constantFrom("0", "1", "01"),
      n: fc.constantFrom(0, 1, 10),
    });
    const items = fc.record({ of: few, index: fc.constantFrom(0, 1, 10) });
    const all = fc.tuple(fc.array(few, { minLength: 20 }), fc.array(items, { minLength: 20 }));
    fc.assert(
      fc.property(all, ([runs, items]) => {
        const seen = new Map<string, string>();
        for (const one of [...runs, ...items]) {
          const id = "of" in one ? itemId(idOf(one.of), one.index) : idOf(one);
          const parts = JSON.stringify(one);
          expect(seen.get(id) ?? parts).toBe(parts);
          seen.set(id, parts);
        }
      }),
    );
  });

  it.each(["wait", "123", "a_1", "@", "x@_1", "_0", ""])("of other jobs are left as they are: %j", (id) => {
    expect([runOfJob(id), itemOf(id)]).toEqual([id, undefined]);
  });

  it("of a process are readable names, whatever its host is called", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), token, (host, pid, made) => {
        const id = processId(host, pid, made);
        expect(id).toMatch(NAME_PATTERN);
        expect(id.endsWith(`-${pid}-${made}`)).toBe(true);
        expect(turnId(id, 2, 7).split(":")).toEqual([id, "2", "7"]);
      }),
    );
  });
});
