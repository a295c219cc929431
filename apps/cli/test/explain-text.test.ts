import type { RunDetails } from "@carillon/sdk";
import type { ExplainedEvent } from "@carillon/sdk/internal";
import { describe, expect, it } from "vitest";
import { type Account, told } from "../src/commands/explain-text.js";

const time = Date.parse("2026-11-20T08:00:00Z");

const node: Account["nodes"][number] = {
  ...{
    id: "node-1",
    host: "vm",
    pid: 812,
    version: "0",
    tzdata: "",
    bullmq: "6.0.0",
    clockOffset: 0,
    alive: true,
    ready: true,
    state: "ready",
  },
  ...{ started: time - 1_000, beat: time, every: 10_000 },
};

const run = (more: Partial<RunDetails> = {}): RunDetails => ({
  id: "a@x.1",
  task: { queue: "q", owner: "system", id: "a" },
  ...{ type: "t", key: "k", state: "final", outcome: "succeeded", trigger: "schedule", node: "node-1" },
  ...{
    nominal: time,
    due: time,
    enqueued: time + 5,
    started: time + 20,
    finished: time + 1_020,
    attempts: 1,
  },
  ...{ worker: "w", host: "vm", pid: 99, attemptList: [], output: [] },
  ...more,
});

const claimed: ExplainedEvent = {
  ...{ at: time + 5, what: "enqueued", by: "node-1", run: "a@x.1" },
  text: "node-1 enqueued it (schedule), 5 ms after it was due",
};
const event = (what: string, ms: number | undefined, text: string, id = "a@x.1"): ExplainedEvent => ({
  ...{ at: ms === undefined ? undefined : time + ms, what, text, run: id },
});

/** The text for people, without colours. */
function tell(more: Partial<Account> = {}, explanation: Partial<Account["explanation"]> = {}): string {
  const account = {
    task: { owner: "system", id: "a", queue: "q", humanized: "daily", overlap: "skip", catchUp: "one" },
    explanation: {
      task: "system/a",
      time,
      verdict: "enqueued",
      summary: "S.",
      events: [claimed],
      ...explanation,
    },
    ...{ zone: "Europe/Berlin", now: time + 60_000, nodes: [node], run: run() },
    ...more,
  };
  return told(account as unknown as Account, (_, text) => text);
}

const verdict = (more: Partial<RunDetails>) => tell({ run: run(more) }).split("\n")[4];

describe("the verdict", () => {
  it.each<[Partial<RunDetails>, string]>([
    [{}, "SUCCEEDED  It was enqueued on time, 5 ms after it was due, and succeeded after 1 s."],
    [
      { outcome: "timed-out", attempts: 2, error: "too long\nat" },
      "TIMED OUT  It was enqueued on time, 5 ms after it was due, and was out of time after 1 s and 2 attempts: too long.",
    ],
    [
      { outcome: "nothing-to-do" },
      "NOTHING TO DO  It was enqueued on time, 5 ms after it was due, and had nothing to do after 1 s.",
    ],
    [
      { outcome: "cancelled", started: undefined as never, attempts: 0 },
      "CANCELLED  It was enqueued on time, 5 ms after it was due, and was cancelled before it started.",
    ],
    [
      { state: "running", outcome: undefined as never, finished: undefined as never },
      "RUNNING  It was enqueued on time, 5 ms after it was due, and has been running for 59 s on vm, process 99.",
    ],
    [
      { state: "terminating", outcome: undefined as never, finished: undefined as never },
      "TERMINATING  It was enqueued on time, 5 ms after it was due, and is being ended on vm, process 99.",
    ],
    [
      {
        state: "queued",
        outcome: undefined as never,
        finished: undefined as never,
        started: undefined as never,
        attempts: 0,
      },
      "QUEUED  It was enqueued on time, 5 ms after it was due, and has been waiting for a worker for 59 s.",
    ],
    [
      { state: "queued", outcome: undefined as never, finished: undefined as never, error: "no paper" },
      "QUEUED  It was enqueued on time, 5 ms after it was due, and waits for its next attempt, 59 s after the first: no paper.",
    ],
    [
      { trigger: "backfill", enqueued: time + 3_600_000 },
      "SUCCEEDED  A backfill ran it 1 h after it was due, and succeeded after 1 s.",
    ],
    [{ trigger: "manual" }, "SUCCEEDED  It was asked for by hand, and succeeded after 1 s."],
  ])("is right for %j", (more, expected) => expect(verdict(more)).toBe(expected));

  it("shows until when a crashed run waits, in the given time zone", () => {
    const queued = run({ state: "queued", outcome: undefined as never, attempts: 1 });
    const text = "waits until 2026-11-20T08:05:00Z, and until its task is resumed";
    const lines = tell({ run: queued }, { events: [claimed, event("crash-wait", undefined, text)] });
    const waits = "waits until 09:05:00, and until its task is resumed";
    expect(lines.split("\n")[4]).toBe(
      `QUEUED  It was enqueued on time, 5 ms after it was due, and crashed; it ${waits}.`,
    );
    expect(lines).toMatch(new RegExp(`^ +${waits}$`, "m"));
  });

  it("counts the runs of an occurrence", () => {
    const events = [
      claimed,
      event("failed", 10, "it ended: failed"),
      event("enqueued", 20, "again", "a@x.2"),
    ];
    expect(tell({}, { events })).toContain("due (the last of 2 runs), and succeeded");
  });

  it("is the SDK's if the record is deleted, in the given time zone", () => {
    const text = tell(
      { run: undefined },
      { verdict: "planned", summary: "It is due at 2026-11-20T09:30:00Z.", events: [] },
    );
    expect(text).toContain("\nPLANNED  It is due at 10:30:00.\n");
    const other = tell(
      { run: undefined },
      { verdict: "planned", summary: "Due at 2026-11-21T09:30:00Z.", events: [] },
    );
    expect(other).toContain("\nPLANNED  Due at 2026-11-21 10:30:00.\n");
  });
});

describe("the chain", () => {
  const rows = (events: ExplainedEvent[], more: Partial<Account> = {}) => {
    const lines = tell(more, { events }).split("\n");
    return lines.slice(7, 7 + events.length);
  };

  it("shows a node's host, unless it is another process of that name", () => {
    expect(rows([claimed])[0]).toContain("node-1 (vm, process 812) enqueued it");
    expect(rows([claimed], { nodes: [{ ...node, started: time + 6 }] })[0]).toContain("  node-1 enqueued it");
    expect(rows([claimed], { nodes: [] })[0]).toContain("  node-1 enqueued it");
    expect(rows([{ ...claimed, by: "-", text: "- skipped it (paused)" }])[0]).toContain(
      "  a client skipped it",
    );
  });

  it("puts crashes before the end of their run", () => {
    const end = event("crashed", 900, "it ended: crashed");
    const crashes = event("crashes", undefined, "3 of its attempts lost their worker");
    const attempt = event("attempt", 20, "attempt 1 started on vm");
    const said = rows([claimed, attempt, end, crashes]).map(
      (row) => /enqueued|attempt 1|lost their worker|it ended/.exec(row)?.[0],
    );
    expect(said).toEqual(["enqueued", "attempt 1", "lost their worker", "it ended"]);
    // A run without an end lists its crashes last.
    expect(rows([claimed, attempt, crashes])[2]).toContain("lost their worker");
  });

  it("has dates if it spans days", () => {
    const late = event("attempt", 86_400_000, "attempt 1 started on vm");
    expect(rows([claimed, late])).toEqual([
      expect.stringMatching(/^2026-11-20 09:00:00.005 {2}2026-11-20T08:00:00.005Z {2}\+5 ms {2}node-1/),
      expect.stringMatching(/^2026-11-21 09:00:00 {6}2026-11-21T08:00:00Z {7}\+1 d {2}attempt 1/),
    ]);
  });

  it("prints the text of an error unchanged, without control characters", () => {
    const end = event("failed", 30, "it ended: failed: at 2026-11-20T08:00:00Z \u001b[2J");
    expect(rows([claimed, end])[1]).toContain("it ended: failed: at 2026-11-20T08:00:00Z \\u001b[2J");
  });
});

describe("the notes", () => {
  it("name the place of the output", () => {
    const output = [{ attempt: 1, text: "log a\nlog b\n", cut: false }];
    expect(tell({ run: run({ output }) })).toContain("\nprinted   2 lines: carillon run a@x.1\n");
    expect(tell()).not.toContain("printed");
  });

  it("report that no node is alive, if that matters", () => {
    const alone = { nodes: [{ ...node, alive: false }] };
    expect(tell(alone, { verdict: "planned" })).toContain("\nnodes     none is alive");
    expect(tell({}, { verdict: "planned" })).not.toContain("nodes");
    expect(tell(alone)).not.toContain("nodes");
  });

  it("name the blocking run, even while it is running", () => {
    const going = run({ state: "running", outcome: undefined as never, finished: undefined as never });
    expect(tell({ run: going }, { verdict: "skipped" })).toContain(
      "\nin the way  a@x.1: enqueued 09:00:00.005, started 09:00:00.020 on vm, process 99, is running\n",
    );
  });
});
