import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";
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
    .calls(
      "backfills.list",
      rows(out, "backfills", () => columns(now), "No backfills."),
      {
        input: async (_, { client, options }) => {
          now = options.json ? 0 : await client.serverTime();
        },
      },
    );
  registerOne(backfills, out);
};

const columns = (now: number): Column<Backfill>[] => [
  { title: "ID", value: "id" },
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  { title: "QUEUE", value: ({ task }) => task.queue, rank: 2, least: 8 },
  { title: "STATE", value: "state" },
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
  { title: "BY", value: "by", rank: 1, least: 8 },
  { title: "BATCH", value: ({ batch }) => batch ?? "", rank: 3 },
];
