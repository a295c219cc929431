import type { Outcome, SkipReason } from "@carillon/core";
import { duration, frozenText, gapText, pauseText } from "@carillon/core/internal";
import type {
  ExplainedEvent,
  ExplainedReason,
  ExplainedRun,
  Explanation,
} from "../occurrences/explanation.js";
import type { Voice } from "./voice.js";

const REASONS: Readonly<Record<SkipReason, string>> = {
  overlap: "an earlier run was not over, and the overlap policy lets none start beside it",
  behind: "an earlier run was not over, because no worker had begun it, or only just",
  "manual-overlap": "asked for by hand while an earlier run was not over",
  "manual-superseded": "asked for by hand, and again before it could go",
  missed: "it could be decided only when it was too late for it, and the catch-up policy passes it over",
  paused: "it fell due while the task was paused, and the task was resumed from then on",
  excluded: "an exclusion of the schedule takes it away",
  frozen: "a freeze held its task",
  quota: "a quota was used up: as many jobs waited as may, or it came too soon after the time before",
  shadow: "it would have been enqueued, but the task is a shadow",
  superseded: "a later occurrence, or an edit of the schedule, took its place",
  "retry-superseded": "the next occurrence was due before the retry could go, and does its work",
};

const ENDS: Readonly<Record<Outcome, string>> = {
  succeeded: "succeeded",
  failed: "failed",
  "timed-out": "was out of time",
  partial: "did part of its work",
  cancelled: "was cancelled",
  dropped: "was dropped, too soon after the run before",
  crashed: "crashed for good",
  "nothing-to-do": "had nothing to do",
  lost: "was lost",
};

/** Smallest delay of an enqueue that counts as late, in ms. */
const ON_TIME = 1_000;

/** Why a task ran, or did not, in a sentence or two. */
export function explanationText(explanation: Explanation, voice: Voice): string {
  const { why, hold } = explanation;
  const sentence = whyText(why, explanation, voice);
  return hold && (why.code === "pending" || why.code === "skipped")
    ? `${sentence} The run in its way waits: ${holdText(hold, voice)}.`
    : sentence;
}

function whyText(why: ExplainedReason, explanation: Explanation, voice: Voice): string {
  const { run, now, task, nodes } = explanation;
  const { at = 0, due = 0, by, note, reason = "" } = why;
  switch (why.code) {
    case "ran":
      return run ? ranText(run, explanation, voice) : "It ran.";
    case "retry-superseded":
      return `It ran and failed, but the record of that is no longer kept; its retry was superseded: ${REASONS[why.code]}.`;
    case "skipped":
      return `It was skipped: ${reason === "frozen" && note ? note : (REASONS[reason as SkipReason] ?? reason)}.`;
    case "frozen":
      return `It waits: ${why.frozen ? frozenText(why.frozen, voice.time) : "frozen"}.`;
    case "pending":
      return `It waits: ${pendingText(why, voice)}.`;
    case "owner-full":
      return `${late(due, now, voice)}: ${task.owner} has ${why.held === 1 ? "1 run" : `${why.held} runs`} in queue ${task.queue}, as many as it may. It waits for one to end.`;
    case "no-node":
      return `${late(due, now, voice)}: no scheduler node is alive. Start one; the catch-up policy then decides.`;
    case "not-claimed":
      return `${late(due, now, voice)}; ${nodes === 1 ? "1 node is" : `${nodes} nodes are`} alive.`;
    case "planned":
      return `It is due at ${voice.time(due)}, in ${duration(due - now)}${why.isBounded ? ", unless maxRuns is reached before" : ""}.`;
    case "moving":
      return "A move to another queue holds the task. If none is under way, one was interrupted: repeat it.";
    case "paused":
      return `The task is paused since ${voice.time(at)}.`;
    case "excluded":
      return `The schedule excludes it: ${why.calendar ? "the calendar " : ""}${by}.`;
    case "beyond-max-runs":
      return "It comes after the last run that maxRuns allows.";
    case "not-scheduled":
      return "The schedule, as it is now, names no such time.";
    case "put-later":
      return `The task was put later, at ${voice.time(at)}.`;
    case "forgotten":
      return "It was decided, but the record of it is no longer kept.";
    case "passed-over":
      return "It was passed over when the task was put, edited or resumed.";
  }
}

function late(due: number, now: number, voice: Voice): string {
  return `It is due since ${voice.time(due)}, ${duration(now - due)} ago, and not decided yet`;
}

function ranText(run: ExplainedRun, { runs, events, now, hold }: Explanation, voice: Voice): string {
  const wait = events.findLast((event) => event.code === "crash-wait" && event.run === run.id);
  const end = wait
    ? `crashed; it ${eventText(wait, voice)}`
    : endText(run, now, hold && holdText(hold, voice));
  return `${beginText(run)}${runs > 1 ? ` (the last of ${runs} runs)` : ""}, and ${end}.`;
}

function beginText({ trigger, due, enqueued }: ExplainedRun): string {
  const lateness = `${duration(enqueued - due)} after it was due`;
  switch (trigger) {
    case "manual":
      return "It was asked for by hand";
    case "items":
      return "The failed items of its run were done again";
    case "catch-up":
      return `It was caught up on ${lateness}`;
    case "backfill":
      return `A backfill ran it ${lateness}`;
    default:
      return `It was enqueued ${enqueued - due < ON_TIME ? "on time" : "late"}, ${lateness}`;
  }
}

function endText(run: ExplainedRun, now: number, hold: string | undefined): string {
  const { outcome, started, finished = now, attempts, state, error } = run;
  const why = error === undefined ? "" : `: ${error}`;
  if (outcome === "dropped" && error !== undefined) return `was dropped, since it ${error}`;
  if (outcome !== undefined) {
    if (started === undefined) return `${ENDS[outcome]} before it started${why}`;
    const tries = attempts > 1 ? ` and ${attempts} attempts` : "";
    return `${ENDS[outcome]} after ${duration(finished - started)}${tries}${why}`;
  }
  const since = duration(now - (started ?? run.enqueued));
  if (state === "queued" && attempts > 0)
    return `waits for its next attempt, ${since} after the first${why}${hold === undefined ? "" : `; ${hold}`}`;
  if (state === "queued")
    return hold === undefined
      ? `has been waiting for a worker for ${since}`
      : `has been waiting for ${since}: ${hold}`;
  const where = `on ${run.host}, process ${run.pid}`;
  return state === "running" ? `has been running for ${since} ${where}` : `is being ended ${where}`;
}

/** Reason why no worker takes a run that waits. */
export function holdText(hold: NonNullable<Explanation["hold"]>, { time }: Voice): string {
  return hold.code === "no-worker" ? gapText(hold) : `the queue is paused${pauseText(hold, time)}`;
}

/** One step of an explanation, without its time. */
export function eventText(event: ExplainedEvent, voice: Voice): string {
  const { by = "", host, pid, attempt, crashes = 0, outcome, error, reason = "", note, other } = event;
  const who = by === "-" ? "a client" : host === undefined ? by : `${by} (${host}, process ${pid})`;
  const from = event.from === undefined ? "" : voice.time(event.from);
  const range = event.to === undefined ? "" : `, with all from ${from} to ${voice.time(event.to)}`;
  switch (event.code) {
    case "enqueued":
      return `${who} enqueued it (${event.trigger}), ${duration(event.lateMs ?? 0)} after it was due${
        from && `, for all since ${from}`
      }${askedBy(event.for)}`;
    case "attempt":
      return `attempt ${attempt} started on ${host}, process ${pid}, worker ${by}`;
    case "cancelled":
      return `${by} cancelled it`;
    case "crashes":
      return `${crashes} of its attempts lost their worker`;
    case "ended":
      return `it ended: ${outcome}${error === undefined ? "" : `: ${error}`}`;
    case "crash-wait":
      return `waits ${[
        ...(event.until === undefined ? [] : [`until ${voice.time(event.until)}`]),
        ...(event.paused ? ["until its task is resumed"] : []),
      ].join(", and ")}`;
    case "waited":
      return `due, but the run of ${voice.time(other?.nominal ?? 0)} was not over (now ${stateOf(other)})`;
    case "skipped": {
      const what = reason === "retry-superseded" ? "gave up its retry" : "skipped it";
      const way = other
        ? `; in the way was the run of ${voice.time(other.nominal)}, then not over (now ${stateOf(other)})`
        : "";
      // Notes of freezes say "frozen by …" themselves.
      const why = note === undefined ? reason : note.startsWith(`${reason} `) ? note : `${reason}: ${note}`;
      return `${who} ${what} (${why})${range}${way}`;
    }
    case "retry-superseded":
      return `its retry was given up (${reason})${range}`;
    case "pending":
      return pendingText(event, voice);
  }
}

function pendingText(
  { trigger, until, for: name }: Pick<ExplainedEvent, "trigger" | "until" | "for">,
  { time }: Voice,
): string {
  const when = until === undefined ? "until no run is in its way" : `until ${time(until)}`;
  return `kept (${trigger}) ${when}${askedBy(name)}`;
}

function askedBy(name: string | undefined): string {
  return name === undefined ? "" : `, asked for by ${name}`;
}

function stateOf(run: ExplainedRun | undefined): string {
  return run?.outcome ?? run?.state ?? "gone";
}
