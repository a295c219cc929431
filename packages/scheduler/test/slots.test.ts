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
    for (const part of ["0", "1", "2", "3"]) begin("q", part);
    expect(slots.full).toBe(true);
    expect(slots.stuckAt).toBe(1_000);
    now = 1_000;
    expect(slots.full).toBe(false);
    expect(slots.stuckAt).toBe(Number.POSITIVE_INFINITY);
    expect(slots.free({ queue: "other", part: "0" })).toBe(true);
    expect(slots.free({ queue: "q", part: "4" })).toBe(false);
    expect(slots.free({ queue: "q", part: "a" })).toBe(false);
  });

  it("alerts that wait for `onAlert` take no place of a claim, not even in their own queue", () => {
    for (const queue of ["q", "r", "s", "t"]) begin(queue, "a");
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
