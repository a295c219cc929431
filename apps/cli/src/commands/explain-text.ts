import type { AnswerTo } from "@carillon/ops";
import { duration, eventText, explanationText, relative } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { type Column, table } from "../table.js";
import { counted, facts, type Paint, printable } from "../text.js";
import { utcIso, wallText } from "../times.js";
import { GOOD } from "./run-columns.js";

type Colour = Parameters<Paint>[0];
type Explanation = AnswerTo<"occurrences.explain">;
type ExplainedEvent = Explanation["events"][number];

/** Everything reported about one occurrence. */
export interface Account {
  readonly task: Task;
  readonly explanation: Explanation;
  /** The zone of the requested time. */
  readonly zone: string;
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
} as const satisfies Record<Explanation["verdict"], readonly [string, Colour]>;

/** An account of one occurrence for people. */
export function told(account: Account, paint: Paint): string {
  const { task, explanation, zone } = account;
  const { time, now, events } = explanation;
  const head = facts(
    [
      ["task", `${task.owner}/${task.id} in queue ${task.queue}`],
      ["schedule", task.humanized],
      ["time", `${dayAndClocks(time, zone)}, ${relative(time, now)}`],
    ],
    paint,
  );
  const [word, colour] = labelOf(explanation);
  const sentence = explanationText(explanation, voiceOf(account));
  const verdict = `${paint("bold", paint(colour, word))}  ${printable(sentence)}\n`;
  const chain = inOrder(events);
  const rows = chain.length > 0 ? `\n${table(columnsOf(chain, account), chain, { paint })}` : "";
  return `${head}\n${verdict}${rows}\n${facts(aside(account), paint)}`;
}

function voiceOf(account: Account) {
  return { surface: "cli" as const, time: (at: number) => clock(at, account) };
}

function labelOf({ verdict, run }: Explanation): readonly [string, Colour] {
  if (verdict !== "enqueued" || !run) return WORDS[verdict];
  const word = (run.outcome ?? run.state).replace(/-/g, " ").toUpperCase();
  return [word, run.outcome === undefined ? "yellow" : GOOD.includes(run.outcome) ? "green" : "red"];
}

/** Crashes have no recorded time: they come before the end of their run. */
function inOrder(events: readonly ExplainedEvent[]): ExplainedEvent[] {
  const timeless = events.filter(({ at, code }) => at === undefined && code === "crashes");
  const chain = events.filter((event) => !timeless.includes(event));
  for (const crashes of timeless) {
    const last = chain.findLastIndex(({ run, at }) => run === crashes.run && at !== undefined);
    const over = chain[last]?.code !== "attempt";
    chain.splice(last < 0 ? chain.length : last + (over ? 0 : 1), 0, crashes);
  }
  return chain;
}

function columnsOf(chain: readonly ExplainedEvent[], account: Account): Column<ExplainedEvent>[] {
  const { zone, explanation } = account;
  const voice = voiceOf(account);
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
    { title: "", value: (event) => eventText(event, voice), colour: colourOf },
  ];
}

function colourOf({ code, outcome }: ExplainedEvent): Colour | undefined {
  if (code === "enqueued" || code === "attempt") return undefined;
  if (code === "ended" && outcome !== undefined && GOOD.includes(outcome)) return "green";
  return code === "ended" || code === "crashes" ? "red" : "yellow";
}

/** Details that help to understand it. */
function aside(account: Account): [string, string | undefined][] {
  const { task, explanation, zone } = account;
  const { verdict, nearest, time, now, printed, run, events, nodes } = explanation;
  const { paused } = task;
  const by = paused?.by ? `, by ${paused.by}` : "";
  const why = paused?.note ? `: ${paused.note}` : "";
  const idle = (verdict === "planned" || verdict === "waiting") && nodes === 0;
  const other = verdict === "skipped" ? events.findLast(({ other }) => other)?.other : undefined;
  const near = (found: number | undefined, word: string) =>
    found === undefined
      ? "none"
      : `${dayAndClocks(found, zone)}, ${duration(Math.abs(found - time))} ${word}`;
  return [
    ["before", nearest && near(nearest.before, "earlier")],
    ["after", nearest && near(nearest.after, "later")],
    [
      "jitter",
      run && run.due !== run.nominal
        ? `due at ${clock(run.due, account)}, ${duration(run.due - run.nominal)} later`
        : undefined,
    ],
    ["run", run?.id],
    ["printed", printed === undefined ? "" : `${counted(printed, "line")}: carillon run ${run?.id}`],
    ["in the way", other && runText(other, account)],
    ["paused", paused && `${dayAndClocks(paused.at, zone)}, ${relative(paused.at, now)}${by}${why}`],
    ["nodes", idle ? "none is alive: nothing runs until one starts" : undefined],
    ["policies", `overlap ${task.overlap}, catch-up ${task.catchUp}`],
  ];
}

function runText(run: NonNullable<Explanation["run"]>, account: Account): string {
  const at = (time: number | undefined) => (time === undefined ? "" : ` ${clock(time, account)}`);
  const where = run.worker === undefined ? "" : ` on ${run.host}, process ${run.pid}`;
  const began = run.started === undefined ? "never started" : `started${at(run.started)}${where}`;
  const end = run.outcome === undefined ? `is ${run.state}` : `${run.outcome}${at(run.finished)}`;
  return `${run.id}: enqueued${at(run.enqueued)}, ${began}, ${end}`;
}

/** Time in the requested zone; without the date if it is the requested one. */
function clock(time: number, { zone, explanation }: Pick<Account, "zone" | "explanation">): string {
  const day = wallText(explanation.time, zone).slice(0, 10);
  return wallText(time, zone).replace(`${day} `, "");
}

function dayAndClocks(time: number, zone: string): string {
  const day = new Intl.DateTimeFormat("en-US", { timeZone: zone, weekday: "short" }).format(time);
  return `${day} ${zone === "UTC" ? utcIso(time) : `${wallText(time, zone)} ${zone} (${utcIso(time)})`}`;
}
