import { setTimeout as pause } from "node:timers/promises";
import type { AnswerTo } from "@carillon/ops";
import { duration, isLate, reasonText, remedyText, sentence } from "@carillon/ops/words";
import { noteIfEmpty, type Register, withClient } from "../command.js";
import { EXIT, type ExitCode } from "../exit-codes.js";
import { type Column, type Screen, table } from "../table.js";
import { counted, paragraphs, printable } from "../text.js";
import { CLI_VOICE, when } from "../times.js";

type Status = AnswerTo<"health.status">;
type StatusReason = Status["reasons"][number];

/** Time between two readings of `--watch`, in ms. */
const EVERY = 2_000;

/** Moves to the first column of the first line, and clears from there on. */
const CLEAR = "\u001b[H\u001b[2J";

const EXIT_BY_STATE: Record<Status["state"], ExitCode> = {
  "on-time": EXIT.ok,
  behind: EXIT.attention,
  stopped: EXIT.trouble,
};

export const registerStatus: Register = (program, out) => {
  program
    .verb(
      "status",
      "whether work is on time, behind or stopped, and why",
      [
        "Says in one line whether the work of the namespace is on time, behind (the age of the oldest due occurrence that no node has",
        "claimed, or of a run that has waited for a worker for a minute), or stopped; then each reason, most severe first, with its",
        "remedy, and notes: freezes, paused queues, receivers that do not take alerts. With --owner: the work of that owner.",
        "",
        "Exit codes: 0 on time, 10 behind, 11 stopped.",
      ].join("\n"),
    )
    .flag("--watch", "again every 2 s, until it is interrupted")
    .does(async (options) => {
      await withClient(options, async (client, ops) => {
        const clear = options.watch && options.io.stdout.isTTY ? CLEAR : "";
        for (;;) {
          const status = await ops.health.status();
          out.exitCode = EXIT_BY_STATE[status.state];
          await (options.json ? out.json(status) : out.write(clear + page(status, out)));
          if (!options.watch && !options.json && status.at !== undefined && status.queues.length === 0)
            await noteIfEmpty(client, out);
          if (!options.watch || out.closed) return;
          await pause(EVERY);
        }
      });
    });
};

const COLOURS = { "on-time": "green", behind: "yellow", stopped: "red" } as const;

function page(status: Status, screen: Screen): string {
  const { state, reasons, notes, queues, nodes, workers, at } = status;
  const { paint, width } = screen;
  const facts = [
    counted(nodes.alive, "node") + (nodes.ready === nodes.alive ? "" : `, ${nodes.ready} ready`),
    counted(workers.alive, "worker"),
    counted(queues.length, "queue"),
  ];
  return [
    `${paint(COLOURS[state], headline(status))}\n`,
    paragraphs(
      reasons.map((reason) => texts(reason, at)),
      width,
    ),
    notes.length > 0 ? "\nNotes:\n" : "",
    paragraphs(
      notes.map((note) => texts(note, at)),
      width,
    ),
    at === undefined ? "" : `\n${facts.join(", ")}\n`,
    queues.length > 0 ? `\n${table(COLUMNS, queues, screen)}` : "",
  ].join("");
}

/** The status in one line: `on time`, `12 s behind`, or `stopped: no scheduler node is alive`. */
function headline({ state, behind, reasons }: Status): string {
  if (state === "on-time") return "on time";
  if (state === "behind") return `${duration(behind)} behind`;
  const [first, ...more] = reasons.filter((reason) => !isLate(reason));
  const others = more.length > 0 ? ` (and ${more.length} more)` : "";
  return printable(`stopped: ${first && reasonText(first, CLI_VOICE).replace(/\.$/, "")}${others}`);
}

function texts(reason: StatusReason, now: number | undefined): { text: string; remedy: string } {
  const { code, since } = reason;
  const from = since === undefined ? "" : ` since ${when(Math.floor(since / 1_000) * 1_000, now)}`;
  const text = `${sentence(reasonText(reason, CLI_VOICE))} [${code}]${from}`;
  return { text, remedy: remedyText(reason, CLI_VOICE) };
}

const age = (ms: number | undefined) => (ms === undefined ? "-" : duration(ms));

const COLUMNS: Column<Status["queues"][number]>[] = [
  { title: "QUEUE", value: "name" },
  {
    title: "BEHIND",
    right: true,
    value: ({ behind }) => age(behind || undefined),
    colour: ({ behind }) => (behind >= 1_000 ? "yellow" : undefined),
  },
  {
    title: "PAUSED",
    value: ({ paused }) => (paused ? "yes" : "no"),
    colour: ({ paused }) => (paused ? "red" : undefined),
  },
  { title: "WAITING", right: true, value: "waiting" },
  { title: "OLDEST", right: true, value: (queue) => age(queue.oldestWaitingMs) },
  { title: "ACTIVE", right: true, value: "active" },
  { title: "WORKERS", right: true, value: "workers" },
];
