import { type AlertBody, destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";
import { bounded, factsOf, firstOf, subjectOf, titleOf } from "./text.js";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Escapes what Slack reads as a link, a mention or a command: `<!channel>`, `<@U1>`. */
const escaped = (character: string) => ENTITIES[character] ?? character;
/** The text also stays within a block of code. */
const code = (character: string) => (character === "`" ? "'" : escaped(character));

/** An incoming webhook of Slack: at most 50 blocks, 3,000 characters in a section. */
export const slack = destination({
  carrier: "http",
  fields: { url: secret(webhookUrl) },
  hosts: /^hooks\.slack(-gov)?\.com$/,
  endpoint: ({ url }) => url,
  bodies: (batch) => {
    const { first, others } = firstOf(batch);
    const title = bounded(titleOf(batch), 1_000, escaped);
    const heading = batch.alerts.length === 1 && others === 0 ? [] : [section(`*${title}*`)];
    const rest = others > 0 ? [section(`and ${others} more`)] : [];
    return [
      { text: title, blocks: [...heading, ...first.map((alert) => section(describe(alert))), ...rest] },
    ];
  },
});

/** `verbatim`: Slack makes no links and mentions of plain text, such as `@channel`. */
function section(text: string) {
  return { type: "section", text: { type: "mrkdwn", verbatim: true, text } };
}

function describe(alert: AlertBody): string {
  const { kind, task, message, error, link } = alert;
  const where = task ? ` in queue ${task.queue}` : "";
  const facts = factsOf(alert).map(([name, value]) => `${name} ${bounded(value, 300, escaped)}`);
  return [
    `*${bounded(kind, 50, escaped)}* ${bounded(`${subjectOf(alert)}${where}`, 450, escaped)}`,
    ...(facts.length > 0 ? [bounded(facts.join(" · "), 600)] : []),
    ...(message === undefined ? [] : [bounded(message, 500, escaped)]),
    ...(error === undefined ? [] : [`\`\`\`${bounded(error, 600, code)}\`\`\``]),
    ...(link === undefined
      ? []
      : [`<${bounded(link.replaceAll("|", "%7C"), 600, escaped)}|Open in Carillon>`]),
  ].join("\n");
}
