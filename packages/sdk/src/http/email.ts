import { ALERTS_QUEUE, CarillonError } from "@carillon/core";
import { assertOptions, DESTINATIONS } from "@carillon/core/internal";
import { z } from "zod";
import { defineTask, type TaskType } from "../task-type.js";
import { HttpError } from "./errors.js";
import { Receivers } from "./receivers.js";

/** The part of a nodemailer transport that {@link alertEmail} calls. */
export interface MailTransport {
  sendMail(mail: {
    from: string;
    to: string;
    subject: string;
    text: string;
    messageId: string;
  }): Promise<unknown>;
}

export interface AlertEmailOptions {
  /** `nodemailer.createTransport(process.env.SMTP_URL)`, or any object with its `sendMail`. */
  transport: MailTransport;
  /** The sender: `Carillon <carillon@example.com>`. */
  from: string;
}

/** A mail server that hangs holds a worker's places for this long, in ms. */
const TIMEOUT = 30_000;

const mailSchema = z.object({
  to: z.string(),
  alerts: z.array(
    z.looseObject({
      kind: z.string(),
      task: z.object({ queue: z.string(), owner: z.string(), id: z.string() }).optional(),
      at: z.number(),
    }),
  ),
  more: z.number(),
});
type Mail = z.output<typeof mailSchema>;

/**
 * Sends alerts to the e-mail addresses that tasks name in `alerts`: give it to each worker that has {@link alertWebhook}. An address gets
 * at most one mail a minute for each owner, with all alerts of that minute; one for all owners if it comes from the defaults of `all`. A mail that cannot be sent, or is not sent within 30 s, is
 * tried 8 times.
 *
 * @example
 * const mails = alertEmail({ transport: nodemailer.createTransport(process.env.SMTP_URL), from: "carillon@example.com" });
 * const worker = new Worker({ connection, types: [alertWebhook({ signingKey }), mails] });
 * @throws `INVALID_OPTION`
 */
export function alertEmail(options: AlertEmailOptions): TaskType<typeof mailSchema> {
  assertOptions(options, ["transport", "from"]);
  const { transport, from } = options;
  if (typeof transport?.sendMail !== "function") {
    throw new CarillonError("INVALID_OPTION", "not a mail transport.", {
      field: "transport",
      remedy: "Give nodemailer.createTransport(process.env.SMTP_URL).",
    });
  }
  if (typeof from !== "string" || !from.includes("@")) {
    throw new CarillonError("INVALID_OPTION", "not an address.", {
      field: "from",
      remedy: "Give the sender of the mails, such as carillon@example.com.",
    });
  }
  const receivers = new Receivers();
  return defineTask(DESTINATIONS.email.type, {
    queue: ALERTS_QUEUE,
    payload: mailSchema,
    handler: async (mail, { occurrence }) => {
      // The same for each attempt: a server that knows it does not deliver it twice.
      const messageId = `<${occurrence.run.replace(/[^\w.-]/g, "-")}@carillon>`;
      const message = { from, to: mail.to, subject: subjectOf(mail), text: textOf(mail), messageId };
      await receivers.ask("the mail server", () => inTime(transport.sendMail(message)));
    },
  });
}

/** A transport cannot be stopped; its late answer is ignored. */
async function inTime(sent: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new HttpError("HTTP_TIMEOUT", `The mail server did not answer within ${TIMEOUT} ms.`);
    timer = setTimeout(() => reject(error), TIMEOUT);
  });
  await Promise.race([sent, late]).finally(() => clearTimeout(timer));
}

function subjectOf({ alerts, more }: Mail): string {
  const [first] = alerts;
  if (alerts.length === 1 && more === 0 && first) return `[carillon] ${subjectsOf(first)}: ${first.kind}`;
  const counts = new Map<string, number>();
  for (const { kind } of alerts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`);
  return `[carillon] ${alerts.length + more} alerts: ${kinds.join(", ")}${more > 0 ? ", …" : ""}`;
}

function textOf({ alerts, more }: Mail): string {
  const rest = more > 0 ? `\nand ${more} more, which \`carillon journal --failures\` lists.\n` : "";
  return `${alerts.map(paragraph).join("\n")}${rest}`;
}

/** The task, or the namespace, that it is about. */
function subjectsOf({ task, namespace }: Mail["alerts"][number]): string {
  return task ? `${task.owner}/${task.id}` : String(namespace);
}

const SHOWN = [
  ...["type", "outcome", "nominal", "run", "attempts", "consecutiveFailures", "ended", "message", "error"],
  "link",
];

function paragraph(alert: Mail["alerts"][number]): string {
  const { kind, task, at } = alert;
  const where = task ? ` in queue ${task.queue}` : "";
  const lines = SHOWN.filter((name) => alert[name] !== undefined).map((name) => {
    const value = name === "nominal" ? iso(Number(alert[name])) : String(alert[name]);
    return `  ${name}: ${value.replaceAll("\n", "\n    ")}\n`;
  });
  return `${iso(at)} ${kind}: ${subjectsOf(alert)}${where}\n${lines.join("")}`;
}

const iso = (time: number) => new Date(time).toISOString().replace(".000Z", "Z");
