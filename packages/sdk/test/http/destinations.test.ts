import type { AlertBody, AlertTargetInput } from "@carillon/core/internal";
import { deliveryPayload, parseTarget } from "@carillon/core/internal";
import { describe, expect, it } from "vitest";
import { alertWebhook } from "../../src/http/index.js";
import { failure, KEY, perform, Target } from "./bench.js";

/* Each service is a local server that refuses what the service would refuse. */

const NASTY =
  "<!channel> <@U1|x> & @channel <at>all</at> *a* ```code``` [x](http://evil.example) \u0000\ud83d\ude00";
const failed: AlertBody = {
  kind: "failed",
  namespace: "shop",
  at: 1_795_248_061_020,
  type: "report",
  task: { queue: "reports", owner: "acme", id: "daily" },
  outcome: "timed-out",
  nominal: 1_795_248_000_000,
  run: "daily@mwqfwdl1.20c9da4cdcdbb339",
  attempts: 3,
  consecutiveFailures: 2,
  error: NASTY,
  link: "https://carillon.example.com/runs/daily@m|w&q<f>",
};
const long: AlertBody = {
  ...failed,
  error: "&<`".repeat(50_000),
  message: "&".repeat(50_000),
  type: "<".repeat(128),
};
const named = (n: number): AlertBody => ({
  ...failed,
  task: { queue: "q".repeat(128), owner: "o".repeat(128), id: `${n}` },
});
const { task: _, run: __, ...shared } = failed;
/** Many alerts of one cause. */
const group: AlertBody = {
  ...shared,
  cause: "e75bf74f",
  ...{ alerts: 498, tasks: 501, owners: 25, queues: 10, open: 501, since: 1_795_248_000_000 },
  named: Array.from({ length: 20 }, () => `${"o".repeat(128)}/${"t".repeat(128)}`),
  closed: [{ task: failed.task, ended: ["failed"] }],
};
const BATCHES: [string, { alerts: AlertBody[]; at?: number }][] = [
  ["one", { alerts: [failed] }],
  [
    "one about the namespace",
    { alerts: [{ kind: "stopped", namespace: "shop", code: "NO_NODE", message: NASTY }] },
  ],
  ["the end of an incident", { alerts: [{ ...failed, kind: "recovered", ended: ["failed", "slow"] }] }],
  ["a long one", { alerts: [long] }],
  ["a storm", { alerts: [group], at: 1_795_248_000_000 }],
  ["a digest", { alerts: Array.from({ length: 100 }, (_, n) => named(n)), at: 1_795_248_000_000 }],
  ["a digest of long ones", { alerts: Array.from({ length: 100 }, () => long), at: 1_795_248_000_000 }],
];

type Fault = string | undefined;
type Body = Record<string, unknown>;

/** Rules of incoming webhooks: api.slack.com/reference/block-kit. */
function slackFault(body: Body): Fault {
  const { text, blocks = [], ...rest } = body as { text: string; blocks: Body[] };
  if (Object.keys(rest).length > 0) return "invalid_payload";
  if (!text || text.length > 40_000) return "no_text";
  if (blocks.length === 0 || blocks.length > 50) return "invalid_blocks";
  for (const block of blocks) {
    const { text: content } = block as { text?: { type: string; text: string; verbatim?: boolean } };
    if (block["type"] !== "section" || content?.type !== "mrkdwn") return "invalid_blocks";
    if (content.text.length === 0 || content.text.length > 3_000) return "invalid_blocks_format";
    if (content.verbatim !== true) return "mentions of plain text";
    // Nothing but our own link may be a control sequence, and each `&` begins an entity.
    const others = content.text.replace(/<https:\/\/carillon\.example\.com\/[^<>|]*\|Open in Carillon>/g, "");
    if (/[<>]|&(?!(amp|lt|gt);)/.test(others)) return `control sequence: ${others}`;
    if ((content.text.match(/```/g) ?? []).length > 2) return "code that is not closed";
  }
  if (/[<>]|&(?!(amp|lt|gt);)/.test(text)) return "control sequence";
  return undefined;
}

/** Rules of a Teams workflow: 28 KB, one Adaptive Card; text of users stands only where there is no Markdown. */
function teamsFault(body: Body): Fault {
  if (JSON.stringify(body).length > 28 * 1024) return "too large";
  const { type, attachments = [] } = body as { type: string; attachments: Body[] };
  const [{ contentType, content }] = attachments as [{ contentType: string; content: Body }];
  if (type !== "message" || attachments.length !== 1) return "not a message with one card";
  if (contentType !== "application/vnd.microsoft.card.adaptive") return "contentType";
  if (content["type"] !== "AdaptiveCard" || !/^1\.[0-5]$/.test(String(content["version"]))) return "card";
  for (const block of content["body"] as { type: string; inlines: Body[] }[]) {
    if (block.type !== "RichTextBlock" || block.inlines.length === 0) return "Markdown";
    for (const run of block.inlines)
      if (run["type"] !== "TextRun" || !run["text"]) return "a text run without text";
  }
  for (const action of content["actions"] as Body[])
    if (action["type"] !== "Action.OpenUrl" || !URL.canParse(String(action["url"]))) return "action";
  return undefined;
}

/** Rules of Events API v2: developer.pagerduty.com. */
function pagerdutyFault(body: Body): Fault {
  const {
    routing_key,
    event_action,
    dedup_key,
    payload,
    links = [],
  } = body as Record<string, string> & {
    payload?: Record<string, string>;
    links?: { href: string }[];
  };
  if (!/^\w{32}$/.test(String(routing_key))) return "routing_key";
  if (!dedup_key || dedup_key.length > 255) return "dedup_key";
  if (JSON.stringify(body).length > 512 * 1024) return "too large";
  if (event_action === "resolve") return undefined;
  if (event_action !== "trigger" || !payload) return "event_action";
  if (!payload["summary"] || payload["summary"].length > 1_024 || !payload["source"]) return "payload";
  if (!["critical", "error", "warning", "info"].includes(String(payload["severity"]))) return "severity";
  if (payload["timestamp"] !== undefined && Number.isNaN(Date.parse(payload["timestamp"])))
    return "timestamp";
  return links.every(({ href }) => URL.canParse(href)) ? undefined : "links";
}

const routingKey = "0123456789abcdef0123456789abcdef";
const SERVICES: [string, (url: string) => AlertTargetInput, (body: Body) => Fault, accepted: number][] = [
  ["slack", (url) => ({ format: "slack", url }), slackFault, 200],
  ["teams", (url) => ({ format: "teams", url }), teamsFault, 202],
  ["pagerduty", (url) => ({ format: "pagerduty", routingKey, url }), pagerdutyFault, 202],
];

describe("a destination", () => {
  async function open(fault: (body: Body) => Fault = () => undefined, accepted = 200) {
    const target: Target = await Target.open((_, response) => {
      const why = fault(JSON.parse(target.received.at(-1)?.body ?? "") as Body);
      response.writeHead(why === undefined ? accepted : 400).end(why ?? "ok");
      if (why !== undefined) faults.push(why);
    });
    const faults: string[] = [];
    target.ofTest();
    const type = alertWebhook({ allow: [target.host], signingKey: KEY });
    const send = (to: AlertTargetInput, batch: { alerts: AlertBody[]; at?: number }) =>
      perform(type, deliveryPayload(parseTarget(to), { namespace: "shop", ...batch }) as never);
    const bodies = () => target.received.map(({ body }) => JSON.parse(body) as Body);
    return { target, send, faults, bodies };
  }

  for (const [format, to, fault, accepted] of SERVICES)
    it.each(BATCHES)(`${format} takes %s`, async (_, batch) => {
      const { target, send, faults } = await open(fault, accepted);
      const sent = await send(to(target.url), batch).catch((error: Error) => error);
      expect(faults).toEqual([]);
      expect(sent).toEqual({ status: accepted });
      expect(target.received.length).toBeGreaterThan(0);
    });

  it("of Slack refuses our JSON, so that the delivery fails and is visible", async () => {
    const { target, send, faults } = await open(slackFault);
    const error = await failure(send({ url: target.url }, { alerts: [failed] }));
    expect([error.message, faults]).toEqual([`${target.host} answered 400.`, ["invalid_payload"]]);
  });

  it("of PagerDuty opens one incident a task and kind, and `recovered` resolves it", async () => {
    const { target, send, bodies } = await open(pagerdutyFault, 202);
    const to = { format: "pagerduty" as const, routingKey, url: target.url };
    const slow = { ...failed, kind: "slow" };
    const recovered = { ...failed, kind: "recovered", ended: ["failed"] };
    for (const alert of [failed, { ...failed, run: "another" }, slow, recovered])
      await send(to, { alerts: [alert] });
    const events = bodies().map(({ event_action, dedup_key }) => [event_action, dedup_key]);
    const key = "carillon/shop/reports/acme/daily";
    expect(events).toEqual([
      ["trigger", `${key}/failed`],
      ["trigger", `${key}/failed`],
      ["trigger", `${key}/slow`],
      ["resolve", `${key}/failed`],
      ["resolve", `${key}/paused`],
    ]);
  });

  it("of PagerDuty opens one incident a storm, and its end resolves it with those that were sent alone", async () => {
    const { target, send, bodies } = await open(pagerdutyFault, 202);
    const to = { format: "pagerduty" as const, routingKey, url: target.url };
    const [storm, some] = [
      { ...group, closed: [] },
      { ...group, kind: "recovered", ended: ["failed"] },
    ];
    for (const alert of [storm, { ...some, open: 3 }, { ...some, open: 0 }])
      await send(to, { alerts: [alert], at: 1 });
    const events = bodies().map(({ event_action, dedup_key }) => `${event_action} ${dedup_key}`);
    const alone = ["failed", "paused"].map((kind) => `resolve carillon/shop/reports/acme/daily/${kind}`);
    const cause = "carillon/shop/cause/e75bf74f";
    expect(events).toEqual([
      `trigger ${cause}/failed`,
      ...alone,
      ...alone,
      ...["failed", "paused"].map((kind) => `resolve ${cause}/${kind}`),
    ]);
    expect(bodies()[0]?.["payload"]).toMatchObject({
      summary: expect.stringMatching(/^501 tasks of 25 owners: failed: /),
    });
  });

  it("with a template gets its JSON, whose form no value changes", async () => {
    const { target, send, bodies } = await open();
    const template = { content: "{{title}}: {{message}}", at: ["{{at}}", 1], "{{kind}}": null };
    const to = { format: "template" as const, url: target.url, template };
    await send(to, { alerts: [{ ...failed, error: '", "x": "{{run}}' }] });
    expect(bodies()).toEqual([
      {
        content: 'acme/daily: failed: ", "x": "{{run}}',
        at: ["2026-11-21T08:01:01.020Z", 1],
        "{{kind}}": null,
      },
    ]);
    await send({ format: "template", url: target.url }, { alerts: [long] });
    expect(bodies()[1]).toEqual({ text: expect.stringMatching(/^acme\/daily: failed\n&{999}…\nhttps:/) });
    expect(() => parseTarget({ ...to, template: { text: "{{titel}}" } })).toThrow(/unknown name/);
  });

  it("of a format that only newer workers know is tried again", async () => {
    const { send } = await open();
    const payload = { to: { format: "pigeon", loft: "x" }, namespace: "shop", alerts: [failed] };
    const error = await failure(perform(alertWebhook({ signingKey: KEY }), payload as never));
    expect([error.name, error.message]).toEqual(["Error", expect.stringContaining("format pigeon")]);
    expect(send).toBeDefined();
  });
});
