import type { AnswerTo } from "@carillon/ops";
import { describe, expect, it } from "vitest";
import { type Account, told } from "../src/commands/explain-text.js";

type Explanation = AnswerTo<"occurrences.explain">;
type ExplainedEvent = Explanation["events"][number];
type ExplainedRun = NonNullable<Explanation["run"]>;

const time = Date.parse("2026-11-20T08:00:00Z");

const run = (more: Partial<ExplainedRun> = {}): ExplainedRun => ({
  id: "a@x.1",
  state: "final",
  outcome: "succeeded",
  trigger: "schedule",
  attempts: 1,
  nominal: time,
  due: time,
  enqueued: time + 5,
  started: time + 20,
  finished: time + 1_020,
  worker: "w",
  host: "vm",
  pid: 99,
  ...more,
});

const claimed: ExplainedEvent = {
  at: time + 5,
  code: "enqueued",
  by: "node-1",
  host: "vm",
  pid: 812,
  run: "a@x.1",
  trigger: "schedule",
  lateMs: 5,
};
const event = (
  code: ExplainedEvent["code"],
  ms: number | undefined,
  more: Partial<ExplainedEvent> = {},
): ExplainedEvent => ({ at: ms === undefined ? undefined : time + ms, code, run: "a@x.1", ...more });

/** The text for people, without colours. */
function tell(more: Partial<Explanation> = {}): string {
  const task = { owner: "system", id: "a", queue: "q", humanized: "daily", overlap: "skip", catchUp: "one" };
  const explanation: Explanation = {
    task,
    time,
    now: time + 60_000,
    verdict: "enqueued",
    why: { code: "ran" },
    events: [claimed],
    run: run(),
    runs: 1,
    nodes: 1,
    ...more,
  };
  return told({ task, explanation, zone: "Europe/Berlin" } as unknown as Account, (_, text) => text);
}

const open = { outcome: undefined, finished: undefined };
const verdict = (more: Partial<ExplainedRun>) => tell({ run: run(more) }).split("\n")[4];

describe("the verdict", () => {
  it.each<[Partial<ExplainedRun>, string]>([
    [{}, "SUCCEEDED  It was enqueued on time, 5 ms after it was due, and succeeded after 1 s."],
    [
      { outcome: "timed-out", attempts: 2, error: "too long" },
      "TIMED OUT  It was enqueued on time, 5 ms after it was due, and was out of time after 1 s and 2 attempts: too long.",
    ],
    [
      { outcome: "nothing-to-do" },
      "NOTHING TO DO  It was enqueued on time, 5 ms after it was due, and had nothing to do after 1 s.",
    ],
    [
      { outcome: "cancelled", started: undefined, attempts: 0 },
      "CANCELLED  It was enqueued on time, 5 ms after it was due, and was cancelled before it started.",
    ],
    [
      { state: "running", ...open },
      "RUNNING  It was enqueued on time, 5 ms after it was due, and has been running for 59 s on vm, process 99.",
    ],
    [
      { state: "terminating", ...open },
      "TERMINATING  It was enqueued on time, 5 ms after it was due, and is being ended on vm, process 99.",
    ],
    [
      { state: "queued", ...open, started: undefined, attempts: 0 },
      "QUEUED  It was enqueued on time, 5 ms after it was due, and has been waiting for a worker for 59 s.",
    ],
    [
      { state: "queued", ...open, error: "no paper" },
      "QUEUED  It was enqueued on time, 5 ms after it was due, and waits for its next attempt, 59 s after the first: no paper.",
    ],
    [
      { trigger: "backfill", enqueued: time + 3_600_000 },
      "SUCCEEDED  A backfill ran it 1 h after it was due, and succeeded after 1 s.",
    ],
    [{ trigger: "manual" }, "SUCCEEDED  It was asked for by hand, and succeeded after 1 s."],
  ])("is right for %j", (more, expected) => expect(verdict(more)).toBe(expected));

  it("shows until when a crashed run waits, in the given time zone", () => {
    const until = Date.parse("2026-11-20T08:05:00Z");
    const waiting = event("crash-wait", undefined, { until, paused: true });
    const lines = tell({ run: run({ state: "queued", outcome: undefined }), events: [claimed, waiting] });
    const waits = "waits until 09:05:00, and until its task is resumed";
    expect(lines.split("\n")[4]).toBe(
      `QUEUED  It was enqueued on time, 5 ms after it was due, and crashed; it ${waits}.`,
    );
    expect(lines).toMatch(new RegExp(`^ +${waits}$`, "m"));
  });

  it("counts the runs of an occurrence", () => {
    expect(tell({ runs: 2 })).toContain("due (the last of 2 runs), and succeeded");
  });

  it("has times in the given zone, with the date if it is another one", () => {
    const planned = (at: string) =>
      tell({
        verdict: "planned",
        run: undefined,
        events: [],
        now: Date.parse(at) - 90_000,
        why: { code: "planned", due: Date.parse(at) },
      });
    expect(planned("2026-11-20T09:30:00Z")).toContain("\nPLANNED  It is due at 10:30:00, in 1 min 30 s.\n");
    expect(planned("2026-11-21T09:30:00Z")).toContain("\nPLANNED  It is due at 2026-11-21 10:30:00, in ");
  });
});

describe("the chain", () => {
  const rows = (events: ExplainedEvent[]) =>
    tell({ events })
      .split("\n")
      .slice(7, 7 + events.length);

  it("shows the host of a node, if it is known", () => {
    expect(rows([claimed])[0]).toContain("node-1 (vm, process 812) enqueued it");
    expect(rows([{ ...claimed, host: undefined }])[0]).toContain("  node-1 enqueued it");
    expect(rows([event("skipped", 5, { by: "-", reason: "paused" })])[0]).toContain("  a client skipped it");
  });

  it("puts crashes before the end of their run", () => {
    const end = event("ended", 900, { outcome: "crashed" });
    const crashes = event("crashes", undefined, { crashes: 3 });
    const attempt = event("attempt", 20, { attempt: 1, by: "w", host: "vm", pid: 1 });
    const said = rows([claimed, attempt, end, crashes]).map(
      (row) => /enqueued|attempt 1|lost their worker|it ended/.exec(row)?.[0],
    );
    expect(said).toEqual(["enqueued", "attempt 1", "lost their worker", "it ended"]);
    // A run without an end lists its crashes last.
    expect(rows([claimed, attempt, crashes])[2]).toContain("lost their worker");
  });

  it("has dates if it spans days", () => {
    const late = event("attempt", 86_400_000, { attempt: 1, by: "w", host: "vm", pid: 1 });
    expect(rows([claimed, late])).toEqual([
      expect.stringMatching(/^2026-11-20 09:00:00.005 {2}2026-11-20T08:00:00.005Z {2}\+5 ms {2}node-1/),
      expect.stringMatching(/^2026-11-21 09:00:00 {6}2026-11-21T08:00:00Z {7}\+1 d {2}attempt 1/),
    ]);
  });

  it("prints the text of an error unchanged, without control characters", () => {
    const end = event("ended", 30, { outcome: "failed", error: "at 2026-11-20T08:00:00Z \u001b[2J" });
    expect(rows([claimed, end])[1]).toContain("it ended: failed: at 2026-11-20T08:00:00Z \\u001b[2J");
  });
});

describe("the notes", () => {
  it("name the place of the output", () => {
    expect(tell({ printed: 2 })).toContain("\nprinted   2 lines: carillon run a@x.1\n");
    expect(tell()).not.toContain("printed");
  });

  it("report that no node is alive, if that matters", () => {
    const planned = { verdict: "planned", why: { code: "planned", due: time } } as const;
    expect(tell({ ...planned, nodes: 0 })).toContain("\nnodes     none is alive");
    expect(tell(planned)).not.toContain("nodes");
    expect(tell({ nodes: 0 })).not.toContain("nodes");
  });

  it("name the blocking run, even while it is running", () => {
    const other = run({ state: "running", ...open });
    const skip = event("skipped", 5, { by: "node-1", reason: "overlap", other });
    const why = { code: "skipped", reason: "overlap" } as const;
    expect(tell({ verdict: "skipped", why, run: undefined, events: [skip] })).toContain(
      "\nin the way  a@x.1: enqueued 09:00:00.005, started 09:00:00.020 on vm, process 99, is running\n",
    );
  });
});
