import { type AlertBody, destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";
import { bounded, factsOf, firstOf, subjectOf, titleOf } from "./text.js";

/**
 * A workflow of Microsoft Teams, "When a Teams webhook request is received": an Adaptive Card, at most 28 KB. Users' text stands in
 * text runs, which know no Markdown.
 */
export const teams = destination({
  carrier: "http",
  fields: { url: secret(webhookUrl) },
  hosts: /\.webhook\.office\.com$/,
  endpoint: ({ url }) => url,
  bodies: (batch) => {
    const { first, others } = firstOf(batch);
    const links = first.flatMap(({ link }) => link ?? []);
    const content = {
      $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
      type: "AdaptiveCard",
      version: "1.4",
      msteams: { width: "Full" },
      body: [
        paragraph(run(bounded(titleOf(batch), 300), { size: "Large", weight: "Bolder" })),
        ...first.flatMap(describe),
        ...(others > 0 ? [paragraph(run(`and ${others} more`))] : []),
      ],
      actions: links.slice(0, 1).map((url) => ({ type: "Action.OpenUrl", title: "Open in Carillon", url })),
    };
    const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
    return [{ type: "message", attachments: [attachment] }];
  },
});

const run = (text: string, style: Readonly<Record<string, string>> = {}) => ({
  type: "TextRun",
  text,
  ...style,
});

function paragraph(...inlines: ReturnType<typeof run>[]) {
  return { type: "RichTextBlock", inlines };
}

function describe(alert: AlertBody) {
  const { kind, task, message, error } = alert;
  const where = task ? ` in queue ${task.queue}` : "";
  const facts = factsOf(alert).map(([name, value]) => `${name} ${value}`);
  return [
    paragraph(
      run(kind, { weight: "Bolder", color: kind === "recovered" ? "Good" : "Attention" }),
      run(` ${bounded(`${subjectOf(alert)}${where}`, 450)}`),
    ),
    ...(facts.length > 0 ? [paragraph(run(bounded(facts.join(" · "), 400)))] : []),
    ...(message === undefined ? [] : [paragraph(run(bounded(message, 400)))]),
    ...(error === undefined ? [] : [paragraph(run(bounded(error, 400), { fontType: "Monospace" }))]),
  ];
}
