import type { Outcome, TaskState } from "@carillon/sdk";
import { words } from "../words.js";

export type Tone = "ok" | "bad" | "warn" | "run" | "skip" | "none";

const OUTCOME_TONES: Record<Outcome, Tone> = {
  succeeded: "ok",
  partial: "ok",
  "nothing-to-do": "ok",
  failed: "bad",
  "timed-out": "bad",
  crashed: "bad",
  lost: "bad",
  cancelled: "none",
  dropped: "skip",
};

export function toneOf(outcome: Outcome | undefined): Tone {
  return outcome === undefined ? "none" : OUTCOME_TONES[outcome];
}

/** A label for a state; the colour only repeats the text. */
export function Badge({ tone = "none", children }: { tone?: Tone; children: React.ReactNode }) {
  return (
    <span className="badge" data-tone={tone}>
      {children}
    </span>
  );
}

export function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  return <Badge tone={toneOf(outcome)}>{words.outcomes[outcome]}</Badge>;
}

/** State of a run; once it is final, its outcome. */
export function RunBadge({ run }: { run: { state: string; outcome?: Outcome | undefined } }) {
  if (run.outcome) return <OutcomeBadge outcome={run.outcome} />;
  return <Badge tone="run">{words.runStates[run.state] ?? run.state}</Badge>;
}

export function TaskBadge({ state, openRuns }: TaskLike) {
  if (openRuns?.running) return <Badge tone="run">running</Badge>;
  return <Badge tone={state === "paused" ? "warn" : "none"}>{words.taskStates[state]}</Badge>;
}

interface TaskLike {
  readonly state: TaskState;
  readonly openRuns?: { readonly queued: number; readonly running: number } | undefined;
}
