import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Slots } from "../src/loop/slots.js";

const HANGS = () => new Promise<void>(() => {});

describe("slots for concurrent work", () => {
  let slots: Slots;
  let now: number;
  beforeEach(() => {
    slots = new Slots();
    now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  const begin = (queue: string, part: string) => slots.start({ queue, part, at: 0 }, HANGS);

  it("work that hangs frees its place for other queues, and keeps its queue's", () => {
    for (let part = 0; part < 16; part++) begin("q", `x${part}`);
    expect(slots.full).toBe(true);
    expect(slots.stuckAt).toBe(1_000);
    now = 1_000;
    expect(slots.full).toBe(false);
    expect(slots.stuckAt).toBe(Number.POSITIVE_INFINITY);
    expect(slots.free({ queue: "other", part: "0" })).toBe(true);
    expect(slots.free({ queue: "q", part: "4" })).toBe(false);
    expect(slots.free({ queue: "q", part: "a" })).toBe(false);
  });

  it.each([
    ["short commits", 0.5, 64],
    ["commits as long as they should be", 8, 8],
    ["commits that are far too long", 100, 4],
  ])("there are as many as Redis bears: %s", (_, took, places) => {
    for (let i = 0; i < 100; i++) slots.learn(took);
    let count = 0;
    while (!slots.full) begin("q", `x${count++}`);
    expect(count).toBe(places);
  });

  it("alerts that wait for `onAlert` take no place of a claim, not even in their own queue", () => {
    for (let i = 0; i < 16; i++) begin(i === 0 ? "q" : `q${i}`, "a");
    expect(slots.full).toBe(false);
    expect(slots.free({ queue: "u", part: "a" })).toBe(false);
    expect(slots.stuckAt).toBe(1_000);
    now = 1_000;
    expect(slots.free({ queue: "q", part: "a" })).toBe(false);
    expect(slots.free({ queue: "q", part: "0" })).toBe(true);
    expect(slots.free({ queue: "u", part: "a" })).toBe(true);
  });

  it("the wait resolves when nothing is under way", async () => {
    let end = () => {};
    const work = () => new Promise<void>((resolve) => (end = resolve));
    slots.start({ queue: "q", part: "0", at: 0 }, work);
    expect(slots.free({ queue: "q", part: "0" })).toBe(false);
    end();
    await slots.idle();
    expect(slots.free({ queue: "q", part: "0" })).toBe(true);
  });
});
