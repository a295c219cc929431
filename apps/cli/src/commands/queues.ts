import type { AnswerTo } from "@carillon/ops";
import { duration, limitText } from "@carillon/ops/words";
import { noteIfEmpty, type Register } from "../command.js";
import { misuse } from "../failure.js";
import { type Column, table } from "../table.js";
import { counted, printable } from "../text.js";
import { when } from "../times.js";
import { holdsText } from "./holds-text.js";
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
  const also = ({ queue }: { readonly queue: string }) => ({ queue });
  queues
    .verb("pause", "let the workers of a queue take no more jobs")
    .calls(
      "queues.pause",
      ({ changed, holds }, { queue, dryRun }) =>
        (dryRun ? "" : `${changed ? "paused" : "was paused already:"} ${queue}\n`) +
        holdsText(out, holds, dryRun ? "would hold" : "holds"),
      { also: ({ queue, dryRun }) => ({ queue, ...(dryRun ? {} : { state: "paused" }) }) },
    );
  queues
    .verb("resume", "let the workers of a queue take jobs again")
    .calls(
      "queues.resume",
      ({ changed }, { queue }) => `${changed ? "resumed" : "was not paused:"} ${queue}\n`,
      {
        also,
      },
    );
  queues.verb("limit", "limit the runs that one owner may have open in a queue").calls(
    "queues.limit",
    ({ changed }, { queue, owner, runs }) => {
      const limit = runs === null ? "no limit" : counted(runs, "run");
      return `${changed ? "" : "unchanged: "}${queue}: ${limit} for ${ownerText(owner)}\n`;
    },
    { also: ({ queue, owner, runs }) => ({ queue, owner, runs }) },
  );
  queues.verb("limits", "the limits of a queue by owner").calls(
    "queues.limits",
    ({ limits }) =>
      Object.entries(limits)
        .map(([owner, runs]) => `${ownerText(owner)}: ${runs}\n`)
        .join("") || "No limits.\n",
    { also },
  );
  queues
    .verb("rm", "delete a queue with its tasks and jobs")
    .flag("--all", "all of it; refused without it")
    .calls("queues.delete", ({ count }, { queue }) => `deleted ${queue} with ${counted(count, "task")}\n`, {
      also: ({ queue }) => ({ queue, deleted: true }),
      async input({ queue }, { ops, options: { all } }) {
        if (all) return;
        const found = (await ops.queues.list()).queues.find((one) => one.name === queue);
        const what = found ? jobs(found) : "no tasks";
        throw misuse("all", `missing. queues rm means all of ${queue}: ${what}.`, "Add --all to go on.");
      },
    });
};

type QueueView = AnswerTo<"queues.list">["queues"][number];

const ownerText = (owner: string) => (owner === "*" ? "any other owner" : owner);

function jobs({ tasks, waiting = 0, active = 0 }: QueueView): string {
  return `${counted(tasks, "task")}, ${waiting} waiting and ${active} active jobs`;
}

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
