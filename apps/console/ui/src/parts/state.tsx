import { type Display, displayText } from "@carillon/ops/words";
import type { Outcome, Task } from "@carillon/sdk";
import { useVoice } from "../lib/time.js";
import { nameOf } from "../words.js";

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

/** Outcome of a run. A success is as usual, and has no badge. */
export function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  if (outcome === "succeeded") return <span className="soft">{nameOf(outcome)}</span>;
  return <Badge tone={toneOf(outcome)}>{nameOf(outcome)}</Badge>;
}

/** State of a run; once it is final, its outcome. */
export function RunBadge({ run }: { run: { state: string; outcome?: Outcome | undefined } }) {
  if (run.outcome) return <OutcomeBadge outcome={run.outcome} />;
  return <Badge tone="run">{nameOf(run.state)}</Badge>;
}

/** Tones of states that a person may have to see to; the others are as usual, and have no badge. */
const DISPLAY_TONES: Partial<Record<Display["code"], Tone>> = {
  ...{ runs: "run", fails: "bad", overdue: "warn", held: "warn", paused: "warn", moving: "warn" },
  ...{ "waits-for-attempt": "warn", "waits-for-queue": "warn", "waits-for-worker": "run" },
};

/** The present state of a task. */
export function TaskBadge({ display, mode, timezone }: Pick<Task, "display" | "mode" | "timezone">) {
  const { time } = useVoice(timezone);
  if (display === undefined) return null;
  const { code, type, failures = 0, note } = display;
  const isBad = type !== undefined || (code === "over" && failures > 0);
  const tone = isBad ? "bad" : DISPLAY_TONES[code];
  const text = `${displayText(display, time)}${mode === undefined ? "" : ` (${mode})`}`;
  return tone === undefined ? (
    <span className="soft">{text}</span>
  ) : (
    <span className="badge state" data-tone={tone} title={note === undefined ? text : `${text}: ${note}`}>
      {text}
    </span>
  );
}
