import { z } from "zod";
import { type AlertBody, destination } from "./destination.js";
import { factsOf, iso, subjectOf, titleOf } from "./text.js";

/** An e-mail address. */
export const email = destination({
  carrier: "mail",
  implied: true,
  fields: { email: z.email().max(254) },
  endpoint: ({ email }) => email,
  mail: (batch, { email: to }) => ({
    to,
    subject: `[carillon] ${titleOf(batch)}`,
    text: batch.alerts.map(paragraph).join("\n"),
  }),
});

function paragraph(alert: AlertBody): string {
  const { kind, task, at = 0, message, error, link } = alert;
  const where = task ? ` in queue ${task.queue}` : "";
  const texts = Object.entries({ message, error, link });
  const lines = [...factsOf(alert), ...texts].flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name}: ${value.replaceAll("\n", "\n    ")}\n`],
  );
  return `${iso(at)} ${kind}: ${subjectOf(alert)}${where}\n${lines.join("")}`;
}
