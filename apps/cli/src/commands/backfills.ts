import type { AnswerTo } from "@carillon/ops";
import { limitOf, type Register, wholeNumber } from "../command.js";
import { type Column, table } from "../table.js";
import { behindPace, registerOne } from "./backfill.js";

type Backfill = AnswerTo<"backfills.list">["backfills"][number];

export const registerBackfills: Register = (program, out) => {
  let now = 0;
  const backfills = program
    .verb(
      "backfills",
      "the backfills, newest first",
      "Lists the backfills that run, or ended in the last 7 days, newest first.",
    )
    .flag("-q, --queue <queue>", "of this queue")
    .flag("--state <state>", "in this state", ["running", "done", "cancelled"])
    .flag("--batch <id>", "that one call started")
    .flag("-n, --limit <n>", "at most 1,000; default 100", wholeNumber)
    .answer(
      async ({ ops, client, options }) => {
        const { queue, owner, state, batch, json } = options;
        now = json ? 0 : await client.serverTime();
        return ops.backfills.list({ queue, owner, state, batch, limit: limitOf(options.limit, 1_000) });
      },
      ({ backfills }) => (backfills.length ? table(columns(now), backfills, out) : "No backfills.\n"),
    );
  registerOne(backfills, out);
};

const columns = (now: number): Column<Backfill>[] => [
  { title: "ID", value: ({ id }) => id },
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  { title: "QUEUE", value: ({ task }) => task.queue, rank: 2, least: 8 },
  { title: "STATE", value: ({ state }) => state },
  {
    title: "PROGRESS",
    value: ({ enqueued, skipped, total }) => `${enqueued + skipped}/${total}`,
    right: true,
  },
  {
    title: "BEHIND PACE",
    value: (one) => String(behindPace(one, now) || ""),
    right: true,
    rank: 4,
    colour: (one) => (behindPace(one, now) > 0 ? "yellow" : undefined),
  },
  { title: "STARTED", value: ({ created }, { when }) => when(created) },
  { title: "BY", value: ({ by }) => by, rank: 1, least: 8 },
  { title: "BATCH", value: ({ batch }) => batch ?? "", rank: 3 },
];
