import { ALERTS_QUEUE } from "@carillon/core";
import { assertOptions, CARRIERS, invalid } from "@carillon/core/internal";
import { defineTask, type TaskType } from "../task-type.js";
import { HttpError } from "./errors.js";
import { Receivers } from "./receivers.js";
import { deliveryOf, deliverySchema } from "./webhook.js";

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

/**
 * Sends alerts to the e-mail addresses that tasks name in `alerts`: give it to each worker that has {@link alertWebhook}. An address gets
 * at most one mail a minute, with all alerts of it; one for each owner if tasks or an owner's defaults name it. A mail that cannot be sent, or is not sent within 30 s, is
 * tried 8 times.
 *
 * @example
 * const mails = alertEmail({ transport: nodemailer.createTransport(process.env.SMTP_URL), from: "carillon@example.com" });
 * const worker = new Worker({ connection, types: [alertWebhook({ signingKey }), mails] });
 * @throws `INVALID_OPTION`
 */
export function alertEmail(options: AlertEmailOptions): TaskType<typeof deliverySchema> {
  assertOptions(options, ["transport", "from"]);
  const { transport, from } = options;
  if (typeof transport?.sendMail !== "function") {
    throw invalid(
      "transport",
      "not a mail transport.",
      "Give nodemailer.createTransport(process.env.SMTP_URL).",
    );
  }
  if (typeof from !== "string" || !from.includes("@")) {
    throw invalid("from", "not an address.", "Give the sender of the mails, such as carillon@example.com.");
  }
  const receivers = new Receivers();
  return defineTask(CARRIERS.mail.type, {
    queue: ALERTS_QUEUE,
    payload: deliverySchema,
    handler: async (payload, { occurrence }) => {
      // The same for each attempt: a server that knows it does not deliver it twice.
      const messageId = `<${occurrence.run.replace(/[^\w.-]/g, "-")}@carillon>`;
      const { mail } = deliveryOf(payload);
      if (mail)
        await receivers.ask("the mail server", () =>
          inTime(transport.sendMail({ from, ...mail, messageId })),
        );
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
