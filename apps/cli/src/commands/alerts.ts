import type { AnswerTo } from "@carillon/ops";
import { type Register, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { type Column, table } from "../table.js";
import { counted, cut, printable } from "../text.js";
import { when } from "../times.js";
import { holdsText } from "./holds-text.js";

/** Interval at which the run of a test is read, in ms. */
const EVERY = 200;

export const registerAlerts: Register = (program, out) => {
  const alerts = program
    .verb(
      "alerts",
      "the last alerts, what is undelivered, and silences; tests of destinations",
      "Lists the last alerts, the deliveries that wait or failed, and the silences; tests a destination.",
    )
    .takes("alerts.list", ["kind", "limit"], { about: { limit: "at most 1,000; default 20" } })
    .answer(
      async ({ ops, options: { kind, limit = 20 } }) => {
        const [{ alerts }, undelivered, { silences }] = await Promise.all([
          ops.alerts.list({ kind, limit }),
          ops.alerts.undelivered(),
          ops.silences.list(),
        ]);
        return { alerts, undelivered, silences };
      },
      ({ alerts, undelivered, silences }) => {
        const { length: waiting } = undelivered.alerts;
        const parts = [
          alerts.length > 0 ? table(ALERTS, alerts, out) : "No alerts.\n",
          waiting > 0 && `${counted(waiting, "alert waits", "alerts wait")} for a node.\n`,
          undelivered.deliveries.length > 0 && table(DELIVERIES, undelivered.deliveries, out),
          silences.length > 0 && table(SILENCES, silences, out),
        ];
        return parts.filter(Boolean).join("\n");
      },
    );
  alerts
    .verb(
      "test",
      "send a test alert to a destination",
      "Sends a test alert to a destination, by a worker with alertWebhook or alertEmail, and waits for its end.",
    )
    .argument("<destination>", "an http or https URL, an e-mail address, or a routing key")
    .takes("alerts.test", ["format", "url"])
    .needs("--wait <duration>", "give up after", { otherwise: "30s" })
    .does(async (options, target: string) => {
      const sdk = await import("@carillon/sdk/schedule");
      const patience = sdk.parseDuration(options.wait, "--wait");
      const { format, url } = options;
      const run = await withClient(options, async (client, ops) => {
        const { run: id } = await ops.alerts.test({ target, format, url });
        for (let waited = 0; ; waited += EVERY) {
          const found = await client.runs.get(id);
          if (found.state === "final" || waited >= patience) return found;
          await new Promise((resolve) => setTimeout(resolve, EVERY));
        }
      });
      const arrived = run.outcome === "succeeded";
      if (!arrived) out.exitCode = EXIT.unexpected;
      if (options.json) return out.json({ arrived, run });
      const why =
        run.state === "final" ? cut((run.error ?? run.outcome ?? "").split("\n")[0] ?? "", 300) : WAITS;
      await out.write(arrived ? "it arrived\n" : `it did not arrive: ${printable(why)}\n`);
    });
  program
    .verb("silence", "deliver no alerts of an owner, a task, a queue, a kind or a cause for a time")
    .calls(
      "silences.put",
      (put, { dryRun }) =>
        (dryRun ? "" : `silence ${put.id}: ${scopeOf(put)}, ${untilText(put)}\n`) +
        holdsText(out, put.holds, dryRun ? "would silence" : "silences"),
      {
        args: [],
        about: { task: "alerts of this task: [owner/]id" },
        times: "from",
        more: { unbound: true },
        input({ owner, task }, { options }) {
          if (options.owner !== undefined && owner !== options.owner)
            throw misuse("task", `not a task of ${options.owner}.`, "Leave one of the two owners out.");
          return { task: task || undefined };
        },
      },
    );
  program
    .verb("unsilence", "end a silence")
    .calls("silences.delete", (_, { id }) => `ended ${printable(id)}\n`, {
      also: ({ id }) => ({ id, ended: true }),
    });
};

const WAITS = "no worker has sent it yet; is there one with alertWebhook or alertEmail?";

type Silence = AnswerTo<"silences.list">["silences"][number];

function untilText({ until, untilGone }: Silence): string {
  return untilGone ? `until its cause is gone, ${when(until)} or later` : `until ${when(until)}`;
}

function scopeOf({ owner, task, queue, kind, cause }: Silence): string {
  const parts = Object.entries({ owner, task, queue, kind, cause }).filter(
    ([, value]) => value !== undefined,
  );
  return parts.length === 0 ? "all" : parts.map(([field, value]) => `${field} ${value}`).join(", ");
}

const ALERTS: Column<AnswerTo<"alerts.list">["alerts"][number]>[] = [
  { title: "AT", value: ({ at }, { when }) => when(at) },
  { title: "KIND", value: "kind", colour: ({ kind }) => (kind === "recovered" ? "green" : "red") },
  { title: "QUEUE", value: ({ task, queue }) => task?.queue ?? queue ?? "-", rank: 3, least: 8 },
  { title: "TASK", value: ({ task }) => (task ? `${task.owner}/${task.id}` : "-") },
  {
    title: "TO",
    value: ({ to, silenced }) => (silenced ? `silenced ${silenced}` : to.join(", ") || "-"),
    rank: 1,
    least: 16,
  },
  {
    title: "ABOUT",
    value: ({ message, ended, error }) => message ?? ended?.join(", ") ?? error?.split("\n")[0] ?? "",
    rank: 2,
    least: 16,
  },
];

const DELIVERIES: Column<AnswerTo<"alerts.undelivered">["deliveries"][number]>[] = [
  { title: "UNDELIVERED", value: "state", colour: ({ state }) => (state === "failed" ? "red" : undefined) },
  { title: "TO", value: "to", least: 16 },
  { title: "OWNER", value: "owner", rank: 3 },
  { title: "SENT AT", value: ({ at }, { when }) => when(at) },
  { title: "KINDS", value: ({ kinds }) => kinds.join(", "), rank: 2 },
  { title: "ERROR", value: ({ error }) => error?.split("\n")[0] ?? "", rank: 1, least: 16 },
];

const SILENCES: Column<Silence>[] = [
  { title: "SILENCE", value: "id" },
  { title: "ALERTS", value: scopeOf },
  { title: "UNTIL", value: ({ until }, { when }) => when(until) },
  { title: "BY", value: "by", rank: 2 },
  { title: "NOTE", value: "note", rank: 1, least: 16 },
];
