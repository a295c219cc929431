import { stripVTControlCharacters } from "node:util";
import type { Line, Managed } from "./processes.js";
import type { Tally } from "./tally.js";

const DIM = "\x1b[2m";
const BOLD = "\x1b[1m";
const RED = "\x1b[31m";
const GREEN = "\x1b[32m";
const END = "\x1b[0m";
const EVENTS_SHOWN = 14;

interface Said {
  claims: number;
  last: string;
  running: Set<string>;
  done: number;
  failed: number;
}

export interface Heading {
  namespace: string;
  consoleUrl: string;
  redisUrl: string;
  /** A command line of the CLI that asks about these tasks. */
  cli: string;
}

/** A compact live view on a terminal; plain lines everywhere else. */
export class View {
  readonly #out: NodeJS.WriteStream;
  readonly #said = new Map<string, Said>();
  readonly #events: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  get live(): boolean {
    return this.#out.isTTY === true;
  }

  start(heading: Heading, processes: readonly Managed[], tally: Tally): void {
    if (!this.live) return;
    this.#out.write("\x1b[?1049h\x1b[?25l");
    this.#timer = setInterval(() => this.#draw(heading, processes, tally), 250);
  }

  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#out.write("\x1b[?25h\x1b[?1049l");
  }

  /** Handles a line that a process logged. */
  hear(line: Line): void {
    const said = this.#of(line.from.name);
    const task = String(line.task ?? "");
    switch (line.msg) {
      case "enqueued": {
        said.claims += 1;
        said.last = `${task} +${Math.max(0, Number(line.at) - Number(line.due))} ms`;
        return this.say(line.from.name, `claimed  ${task}  nominal ${clock(Number(line.nominal))}`);
      }
      case "skipped":
        return this.say(
          line.from.name,
          `skipped  ${task}  ${String(line.reason)} ${clock(Number(line.nominal))}`,
        );
      case "attempt started":
        said.running.add(task);
        return this.say(line.from.name, `started  ${task}`);
      case "attempt failed":
      case "run cancelled":
      case "run failed":
      case "run ended": {
        said.running.delete(task);
        if (line.outcome === "failed") said.failed += 1;
        else said.done += 1;
        const why = line.error ? `  ${String(line.error).split("\n")[0]}` : "";
        return this.say(line.from.name, `${String(line.outcome)}  ${task}  ${String(line.ms)} ms${why}`);
      }
      case "attempt fenced":
        said.running.delete(task);
        return this.say(line.from.name, `fenced   ${task}  another attempt took over`);
      default:
        if (line.level >= 40 || line.kind) this.say(line.from.name, line.msg);
    }
  }

  say(who: string, what: string): void {
    const text = `${clock(Date.now())}  ${who.padEnd(9)} ${what}`;
    if (!this.live) this.#out.write(`${text}\n`);
    this.#events.push(text);
    if (this.#events.length > 200) this.#events.shift();
  }

  #of(name: string): Said {
    const known = this.#said.get(name);
    if (known) return known;
    const said = { claims: 0, last: "", running: new Set<string>(), done: 0, failed: 0 };
    this.#said.set(name, said);
    return said;
  }

  #draw(heading: Heading, processes: readonly Managed[], tally: Tally): void {
    const lines = [
      `${BOLD}Carillon${END}  namespace ${heading.namespace}  ${DIM}${heading.redisUrl}${END}`,
      `Console     ${BOLD}${heading.consoleUrl}${END}`,
      `CLI         ${heading.cli}`,
      "",
    ];
    for (const process of processes) lines.push(this.#row(process));
    const bad = tally.missed + tally.doubled > 0 ? RED : GREEN;
    lines.push(
      "",
      `${tally.enqueued} occurrences enqueued   ${tally.skipped} decisions to skip   ${bad}${tally.missed} missed   ${tally.doubled} doubled${END}`,
      "",
      ...this.#events.slice(-EVENTS_SHOWN).map((text) => `${DIM}${text}${END}`),
      "",
      `${DIM}k  kill -9 a replica     q  quit${END}`,
    );
    const width = this.#out.columns || 100;
    const height = this.#out.rows || 40;
    const page = lines.slice(0, height - 1).map((text) => `${clip(text, width)}\x1b[K`);
    this.#out.write(`\x1b[H${page.join("\n")}\x1b[J`);
  }

  #row(process: Managed): string {
    const said = this.#of(process.name);
    const pid = process.alive
      ? `${GREEN}●${END} ${String(process.child?.pid).padEnd(8)}`
      : `${RED}○ down    ${END}`;
    const name = process.name.padEnd(10);
    if (process.kind === "replica")
      return `${name}${pid} ${String(said.claims).padStart(5)} claims   ${said.last}`;
    if (process.kind === "console") return `${name}${pid}`;
    const running = [...said.running].join(", ");
    const failed = said.failed > 0 ? `${RED}${said.failed} failed${END}  ` : "";
    return `${name}${pid} ${String(said.done).padStart(5)} runs     ${failed}${running ? `now: ${running}` : ""}`;
  }
}

function clock(time: number): string {
  return new Date(time).toLocaleTimeString("en-GB", { hour12: false });
}

/** Cuts a line to the width of the terminal; escape sequences take no room. */
function clip(text: string, width: number): string {
  if (stripVTControlCharacters(text).length <= width) return text;
  return `${stripVTControlCharacters(text).slice(0, width - 1)}…`;
}
