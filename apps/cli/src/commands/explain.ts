import type { Operator } from "@carillon/ops";
import type { Client } from "@carillon/sdk";
import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import { type Moment, readMoment, zoneOfSchedule } from "../moment.js";
import type { Account } from "./explain-text.js";

export const registerExplain: Register = (program, out) => {
  taskCommand(
    program,
    "explain",
    "why a task did, or did not, run at a time; without one, what is due or waits now",
  )
    .description(
      "Explains why a task did, or did not, run at a time: the decision, who made it and when,\n" +
        "how late it was, the run in its way, and each attempt with its end. Without a time, or with now: what is due or\n" +
        "waits now, or else the next time.",
    )
    .argument(
      "[time...]",
      "a nominal time of the schedule: 09:00 (today), yesterday 09:00, '2026-01-31 09:00',\n" +
        "2026-01-31T08:00:00Z, or epoch milliseconds",
    )
    .flag(
      "-z, --timezone <zone>",
      "zone of the time and of the output; default: the schedule's, or UTC if it has none",
    )
    .does(async (options, task: string, words: string[]) => {
      const { moment, ...account } = await withClient(options, (client, ops) =>
        ask(client, ops, task, words.join(" "), options),
      );
      if (moment?.note) out.note(moment.note);
      if (options.json) return out.json(account.explanation);
      const { told } = await import("./explain-text.js");
      await out.write(told(account, out.paint));
    });
};

async function ask(
  client: Client,
  ops: Operator,
  text: string,
  time: string,
  { queue, owner, timezone }: Globals & { queue?: string; timezone?: string },
): Promise<Account & { moment: Moment | undefined }> {
  const sdk = await import("@carillon/sdk/schedule");
  const [task, now] = await Promise.all([client.get(taskRef(text, queue, owner)), client.serverTime()]);
  const zone = timezone ?? zoneOfSchedule(sdk, task.schedule);
  const isPresent = time === "" || time === "now";
  const moment = isPresent ? undefined : readMoment(sdk, time, { zone, now, field: "TIME" });
  const name = { queue: task.queue, owner: task.owner, id: task.id };
  const explanation = await ops.occurrences.explain({ ...name, time: moment?.time });
  return { task, explanation, zone, moment };
}
