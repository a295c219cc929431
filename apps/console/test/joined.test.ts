import { expect, test } from "vitest";
import { joined } from "../ui/src/lib/definition.js";

const base = { description: "old", tags: ["a"], payload: { day: 1 }, priority: 5 };

test("changes of different fields are joined, a removed one and a new one too", () => {
  const { priority: _, ...theirs } = { ...base, description: "theirs", timeLimit: "5m" };
  const mine = { ...base, tags: ["b"] };
  const { draft, theirs: taken, both } = joined(base, theirs, mine);
  expect(JSON.parse(JSON.stringify(draft))).toEqual({ ...theirs, tags: ["b"] });
  expect(taken.sort()).toEqual(["description", "priority", "timeLimit"]);
  expect(both).toEqual([]);
});

test("fields that both changed are named, and stay as they are in mine, unless both chose the same", () => {
  const theirs = { ...base, tags: ["c"], payload: { day: 2 }, description: "same", priority: 6 };
  const { priority: _, ...mine } = { ...base, tags: ["b"], payload: { day: 3 }, description: "same" };
  const { draft, theirs: taken, both } = joined(base, theirs, mine);
  expect(draft).toEqual(mine);
  expect(taken).toEqual([]);
  expect(both.sort()).toEqual(["payload", "priority", "tags"]);
});
