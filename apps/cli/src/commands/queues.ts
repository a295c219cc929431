import type { AnswerTo } from "@carillon/ops";
import { duration, limitText } from "@carillon/ops/words";
import { noteIfEmpty, type Register } from "../command.js";
import { type Column, table } from "../table.js";
import { counted, printable } from "../text.js";
import { when } from "../times.js";
import { registerQueue } from "./queue.js";
import { ended } from "./stats-text.js";

export const registerQueues: Register = (program, out) => {
  const queues = program
    .verb(
      "queues",
      "queues: state, waiting jobs, workers, and outcomes of runs; pause, resume, limit or delete one",
      "Lists the queues that hold tasks: whether each is paused, how many jobs wait in it and for how long, how many\n" +
        "workers it has, BullMQ's own limits of it, and how many runs ended how, deleted tasks included. With --owner: only\n" +
        "that owner's tasks, and no jobs and runs.",
    )
    .answer(
      async ({ ops, client, options }) => {
        const answer = await ops.queues.list();
        if (!options.json && answer.queues.length === 0) await noteIfEmpty(client, out);
        return answer;
      },
      ({ queues }) => {
        if (queues.length === 0) return "No queues.\n";
        const paused = queues.filter((queue) => queue.paused).map(aboutPause);
        const stuck = queues.filter(({ waiting = 0, workers }) => waiting > 0 && workers === 0).map(noWorker);
        return [table(COLUMNS, queues, out), ...paused, ...stuck].join("");
      },
    );
  registerQueue(queues, out);
};

type QueueView = AnswerTo<"queues.list">["queues"][number];

function aboutPause({ name, paused }: QueueView): string {
  const { at, by, note } = paused ?? {};
  const since = at === undefined ? "" : ` since ${when(at)}`;
  const who = by === undefined ? "" : ` by ${by}`;
  const why = note === undefined ? "" : `: ${note}`;
  return `\n${printable(`${name} is paused${since}${who}${why}`)}\n`;
}

function noWorker({ name, waiting }: QueueView): string {
  return `\n${name} has ${counted(waiting ?? 0, "waiting job")} and no worker. Start one: carillon workers lists those that live.\n`;
}

const COLUMNS: Column<QueueView>[] = [
  { title: "QUEUE", value: "name" },
  { title: "TASKS", right: true, value: "tasks" },
  {
    title: "PAUSED",
    value: ({ paused }) => (paused ? "yes" : "no"),
    colour: ({ paused }) => (paused ? "red" : undefined),
  },
  { title: "WAITING", right: true, value: "waiting" },
  { title: "ACTIVE", right: true, value: "active" },
  {
    title: "WORKERS",
    right: true,
    value: "workers",
    colour: ({ workers }) => (workers === 0 ? "red" : undefined),
  },
  {
    title: "LIMIT",
    rank: 1,
    value: ({ limit }) => (limit ? limitText(limit) : "-"),
    colour: ({ limit }) => (limit?.holds ? "yellow" : undefined),
  },
  {
    title: "OLDEST",
    right: true,
    rank: 1,
    value: ({ oldestWaitingMs: age }) => (age === undefined ? "-" : duration(age)),
  },
  {
    title: "RUNS",
    value: ({ outcomes }) => (outcomes ? ended({ outcomes, open: 0 }) : ""),
    rank: 2,
    least: 12,
  },
];
