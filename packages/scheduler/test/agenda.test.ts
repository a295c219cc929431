import { describe, expect, it } from "vitest";
import { Agenda } from "../src/loop/agenda.js";

describe("the agenda", () => {
  it("knows the earliest part over all queues, and what is due", () => {
    const agenda = new Agenda();
    agenda.set(
      "a",
      new Map([
        ["0", 500],
        ["r", 900],
      ]),
    );
    agenda.set("b", new Map([["3", 200]]));
    expect(agenda.earliest(0)).toBe(200);
    expect(agenda.due(500)).toEqual([
      { queue: "b", part: "3", at: 200 },
      { queue: "a", part: "0", at: 500 },
    ]);
  });

  it("accepts announcements of an earlier time, and ignores later ones until it is read again", () => {
    const agenda = new Agenda();
    agenda.nearer("a", "0", 500);
    agenda.nearer("a", "0", 700);
    expect(agenda.earliest(0)).toBe(500);
    agenda.nearer("a", "0", 300);
    expect(agenda.earliest(0)).toBe(300);
    agenda.set("a", new Map());
    expect(agenda.earliest(0)).toBeUndefined();
  });

  it("leaves a held part alone until its time, or until it is released", () => {
    const agenda = new Agenda();
    agenda.set("a", new Map([["0", 100]]));
    agenda.hold("a", "0", 0, 3_000);
    expect(agenda.due(200)).toEqual([]);
    expect(agenda.earliest(200)).toBe(3_000);
    agenda.set("a", new Map([["0", 1_100]]));
    expect(agenda.earliest(200)).toBe(3_000);
    agenda.release("a", "0");
    expect(agenda.earliest(200)).toBe(1_100);
  });

  it("forgets queues that left the registry", () => {
    const agenda = new Agenda();
    agenda.set("a", new Map([["0", 100]]));
    agenda.hold("a", "0", 0, 3_000);
    agenda.keepOnly(["b"]);
    expect(agenda.earliest(0)).toBeUndefined();
    agenda.set("a", new Map([["0", 100]]));
    expect(agenda.earliest(0)).toBe(100);
  });

  it("keeps an announcement that overtook the answer to a read, for known and new queues", () => {
    const agenda = new Agenda();
    const before = agenda.mark();
    agenda.nearer("a", "0", 500);
    agenda.nearer("new", "0", 700);
    agenda.keepOnly(["a"], before);
    agenda.set("a", new Map([["0", 900]]), before);
    expect(agenda.due(1_000).map(({ queue, at }) => [queue, at])).toEqual([
      ["a", 500],
      ["new", 700],
    ]);
    // A later read replaces the estimate.
    agenda.set("a", new Map([["0", 900]]), agenda.mark());
    agenda.keepOnly(["a"], agenda.mark());
    expect(agenda.earliest(0)).toBe(900);
  });

  it("ends holds when the server's clock goes back", () => {
    const agenda = new Agenda();
    agenda.set("a", new Map([["0", 1_000]]));
    agenda.hold("a", "0", 10_000_000, 3_000);
    expect(agenda.due(10_000_100)).toEqual([]);
    // A small step back may be a correction of the estimate: the hold stays.
    expect(agenda.due(9_999_100)).toEqual([]);
    expect(agenda.due(6_400_000)).toHaveLength(1);
  });

  it("takes times from an answer, except where a newer announcement is earlier", () => {
    const agenda = new Agenda();
    agenda.set(
      "a",
      new Map([
        ["0", 100],
        ["1", 100],
        ["2", 100],
      ]),
    );
    const mark = agenda.mark();
    agenda.nearer("a", "1", 200);
    agenda.moved(
      "a",
      new Map([
        ["0", 300],
        ["1", 400],
        ["2", undefined],
      ]),
      mark,
    );
    expect(["0", "1", "2"].map((part) => agenda.head("a", part))).toEqual([
      300,
      200,
      Number.POSITIVE_INFINITY,
    ]);
  });

  it("asks when a part needs its turn", () => {
    const agenda = new Agenda((_, part, at) => (part === "0" ? at - 50 : at));
    agenda.set(
      "a",
      new Map([
        ["0", 100],
        ["r", 80],
      ]),
    );
    expect(agenda.earliest(0)).toBe(50);
    expect(agenda.due(50)).toEqual([{ queue: "a", part: "0", at: 50 }]);
    expect(agenda.at({ queue: "a", part: "0" }, 0)).toBe(50);
  });

  it("asks only about the queues concerned, or about all if their turns have changed", () => {
    let ahead = 0;
    const asked: string[] = [];
    const agenda = new Agenda((queue, _, at) => {
      asked.push(queue);
      return at - ahead;
    });
    for (const queue of ["a", "b", "c"]) agenda.set(queue, new Map([["0", 1_000]]));
    expect(agenda.earliest(0)).toBe(1_000);
    asked.length = 0;
    agenda.nearer("b", "0", 700);
    expect(agenda.due(500)).toEqual([]);
    expect(asked).toEqual(["b"]);
    expect(agenda.earliest(0)).toBe(700);
    ahead = 500;
    agenda.changed();
    expect(agenda.due(500).map(({ queue }) => queue)).toEqual(["b", "a", "c"]);
  });
});
