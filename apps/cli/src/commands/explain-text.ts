import type { AnswerTo } from "@carillon/ops";
import type { Outcome, RunDetails, Task } from "@carillon/sdk";
import type { ExplainedEvent, Explanation } from "@carillon/sdk/internal";
import { type Column, table } from "../table.js";
import { facts, type Paint, printable } from "../text.js";
import { duration, relative, utcIso, wallText } from "../times.js";
import { GOOD } from "./run-columns.js";

type Colour = Parameters<Paint>[0];

/** Everything reported about one occurrence. */
export interface Account {
  readonly task: Task;
  readonly explanation: Explanation;
  /** The zone of the requested time. */
  readonly zone: string;
  /** Redis time, UTC ms. */
  readonly now: number;
  readonly nodes: AnswerTo<"nodes.list">["nodes"];
  /** Its last run, or the run that blocked it. */
  readonly run: RunDetails | undefined;
}

/** State of the occurrence, as a short label. */
const WORDS = {
  enqueued: ["RAN", "green"],
  skipped: ["SKIPPED", "yellow"],
  waiting: ["WAITING", "yellow"],
  due: ["DUE", "red"],
  planned: ["PLANNED", "green"],
  held: ["PAUSED", "yellow"],
  "no-occurrence": ["NO SUCH TIME", "yellow"],
  "before-task": ["BEFORE THE TASK", "yellow"],
  expired: ["FORGOTTEN", "yellow"],
} as const satisfies Record<Account["explanation"]["verdict"], readonly [string, Colour]>;

const ENDS: Readonly<Record<Outcome, string>> = {
  succeeded: "succeeded",
  failed: "failed",
  "timed-out": "was out of time",
  partial: "did part of the work",
  cancelled: "was cancelled",
  dropped: "was dropped, too soon after the run before,",
  crashed: "crashed for good",
  "nothing-to-do": "had nothing to do",
  lost: "was lost",
};

/** Smallest delay worth reporting. */
const ON_TIME = 1_000;

/** An account of one occurrence for people. */
export function told(account: Account, paint: Paint): string {
  const { task, explanation, zone, now } = account;
  const { time, events } = explanation;
  const head = facts(
    [
      ["task", `${task.owner}/${task.id} in queue ${task.queue}`],
      ["schedule", task.humanized],
      ["time", `${dayAndClocks(time, zone)}, ${relative(time, now)}`],
    ],
    paint,
  );
  const { word, colour, sentence } = verdictOf(account);
  const verdict = `${paint("bold", paint(colour, word))}  ${printable(sentence)}\n`;
  const chain = inOrder(events);
  const rows = chain.length > 0 ? `\n${table(columnsOf(chain, account), chain, { paint })}` : "";
  return `${head}\n${verdict}${rows}\n${facts(aside(account), paint)}`;
}

function verdictOf(account: Account): { word: string; colour: Colour; sentence: string } {
  const { explanation, run, now } = account;
  const { verdict, summary, events } = explanation;
  if (verdict !== "enqueued" || !run) {
    const [word, colour] = WORDS[verdict];
    return { word, colour, sentence: onTheClock(summary, account) };
  }
  const { outcome, state } = run;
  const word = (outcome ?? state).replace(/-/g, " ").toUpperCase();
  const colour = outcome === undefined ? "yellow" : GOOD.includes(outcome) ? "green" : "red";
  const runs = new Set(events.flatMap(({ run }) => run ?? [])).size;
  const which = runs > 1 ? ` (the last of ${runs} runs)` : "";
  const wait = events.findLast((event) => event.what === "crash-wait" && event.run === run.id);
  const hold = explanation.hold && onTheClock(explanation.hold, account);
  const end = wait ? `crashed; it ${onTheClock(wait.text, account)}` : ending(run, now, hold);
  return { word, colour, sentence: `${beginning(run)}${which}, and ${end}.` };
}

function beginning({ trigger, due, enqueued }: RunDetails): string {
  const late = enqueued - due;
  const lateness = `${duration(late)} after it was due`;
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
      return late < ON_TIME ? `It was enqueued on time, ${lateness}` : `It was enqueued late, ${lateness}`;
  }
}

function ending(run: RunDetails, now: number, hold: string | undefined): string {
  const { outcome, started, finished = now, attempts, state } = run;
  const error = run.error === undefined ? "" : `: ${run.error.split("\n")[0]}`;
  const tries = attempts > 1 ? ` and ${attempts} attempts` : "";
  if (outcome !== undefined) {
    return started === undefined
      ? `${ENDS[outcome]} before it started${error}`
      : `${ENDS[outcome]} after ${duration(finished - started)}${tries}${error}`;
  }
  const since = duration(now - (started ?? run.enqueued));
  const held = hold === undefined ? "" : `; ${hold}`;
  if (state === "queued" && attempts > 0)
    return `waits for its next attempt, ${since} after the first${error}${held}`;
  if (state === "queued")
    return hold === undefined
      ? `has been waiting for a worker for ${since}`
      : `has been waiting for ${since}: ${hold}`;
  const where = `on ${run.host}, process ${run.pid}`;
  return state === "running" ? `has been running for ${since} ${where}` : `is being ended ${where}`;
}

/** Crashes have no recorded time: they come before the end of their run. */
function inOrder(events: readonly ExplainedEvent[]): ExplainedEvent[] {
  const timeless = events.filter(({ at, what }) => at === undefined && what === "crashes");
  const chain = events.filter((event) => !timeless.includes(event));
  for (const crashes of timeless) {
    const last = chain.findLastIndex(({ run, at }) => run === crashes.run && at !== undefined);
    const over = chain[last]?.what !== "attempt";
    chain.splice(last < 0 ? chain.length : last + (over ? 0 : 1), 0, crashes);
  }
  return chain;
}

function columnsOf(chain: readonly ExplainedEvent[], account: Account): Column<ExplainedEvent>[] {
  const { zone, explanation } = account;
  const sameDay = chain.every(({ at }) => at === undefined || clock(at, account).length < 19);
  const local = ({ at }: ExplainedEvent) =>
    at === undefined ? "" : sameDay ? clock(at, account) : wallText(at, zone);
  const utc = ({ at }: ExplainedEvent) => (at === undefined ? "" : utcIso(at).slice(sameDay ? 11 : 0));
  return [
    ...(zone === "UTC" ? [] : [{ title: "LOCAL", value: local }]),
    { title: "UTC", value: utc },
    {
      title: "AFTER",
      right: true,
      value: ({ at }) => (at === undefined ? "" : `+${duration(at - explanation.time)}`),
    },
    { title: "", value: (event) => textOf(event, account), colour: ({ what }) => colourOf(what) },
  ];
}

function colourOf(what: string): Colour | undefined {
  if (GOOD.includes(what)) return "green";
  if (what === "enqueued" || what === "attempt") return undefined;
  return ["skipped", "pending", "cancel", "waited", "crash-wait"].includes(what) ? "yellow" : "red";
}

/** The SDK's text, with further details of the author. */
function textOf({ text, by, what, at = 0 }: ExplainedEvent, account: Account): string {
  // Leaves the text of errors unchanged.
  const said = ["enqueued", "skipped", "waited", "crash-wait"].includes(what)
    ? onTheClock(text, account)
    : text;
  if (by === undefined || !said.startsWith(`${by} `)) return said;
  // A node of this name that started later was another process.
  const node = account.nodes.find(({ id, started }) => id === by && started <= at);
  const who = by === "-" ? "a client" : node ? `${by} (${node.host}, process ${node.pid})` : by;
  return `${who}${said.slice(by.length)}`;
}

/** Details that help to understand it. */
function aside(account: Account): [string, string | undefined][] {
  const { task, explanation, zone, now, run, nodes } = account;
  const { verdict, nearest, time } = explanation;
  const { paused } = task;
  const ran = verdict === "enqueued" ? run : undefined;
  const lines = ran?.output.reduce((sum, { text }) => sum + text.trimEnd().split("\n").length, 0) ?? 0;
  const by = paused?.by ? `, by ${paused.by}` : "";
  const why = paused?.note ? `: ${paused.note}` : "";
  const idle = (verdict === "planned" || verdict === "waiting") && !nodes.some(({ alive }) => alive);
  const near = (found: number | undefined, word: string) =>
    found === undefined
      ? "none"
      : `${dayAndClocks(found, zone)}, ${duration(Math.abs(found - time))} ${word}`;
  return [
    ["before", nearest && near(nearest.before, "earlier")],
    ["after", nearest && near(nearest.after, "later")],
    [
      "jitter",
      ran && ran.due !== ran.nominal
        ? `due at ${clock(ran.due, account)}, ${duration(ran.due - ran.nominal)} later`
        : undefined,
    ],
    ["run", ran?.id],
    [
      "printed",
      ran && lines > 0 ? `${lines === 1 ? "1 line" : `${lines} lines`}: carillon run ${ran.id}` : "",
    ],
    ["in the way", run && verdict === "skipped" ? runText(run, account) : undefined],
    ["paused", paused && `${dayAndClocks(paused.at, zone)}, ${relative(paused.at, now)}${by}${why}`],
    ["nodes", idle ? "none is alive: nothing runs until one starts" : undefined],
    ["policies", `overlap ${task.overlap}, catch-up ${task.catchUp}`],
  ];
}

function runText(run: RunDetails, account: Account): string {
  const at = (time: number | undefined) => (time === undefined ? "" : ` ${clock(time, account)}`);
  const where = run.worker === undefined ? "" : ` on ${run.host}, process ${run.pid}`;
  const began = run.started === undefined ? "never started" : `started${at(run.started)}${where}`;
  const end = run.outcome === undefined ? `is ${run.state}` : `${run.outcome}${at(run.finished)}`;
  return `${run.id}: enqueued${at(run.enqueued)}, ${began}, ${end}`;
}

/** Converts the UTC times in the SDK's sentences to the requested zone. */
function onTheClock(text: string, account: Account): string {
  return text.replace(/\b\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, (found) => clock(Date.parse(found), account));
}

/** Time in the requested zone; without the date if it is the requested one. */
function clock(time: number, { zone, explanation }: Account): string {
  const day = wallText(explanation.time, zone).slice(0, 10);
  return wallText(time, zone).replace(`${day} `, "");
}

function dayAndClocks(time: number, zone: string): string {
  const day = new Intl.DateTimeFormat("en-US", { timeZone: zone, weekday: "short" }).format(time);
  return `${day} ${zone === "UTC" ? utcIso(time) : `${wallText(time, zone)} ${zone} (${utcIso(time)})`}`;
}
