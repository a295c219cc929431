import { ALERT_KINDS, type SilenceInput } from "@carillon/sdk";
import { z } from "zod";
import { ALERTS, PUT_SILENCE, SILENCES, TESTED, UNDELIVERED } from "./answers.js";
import { ALERTS_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";

const text = z.string("not a text").exactOptional();
const SILENCE = z.strictObject({
  owner: text,
  task: text,
  queue: text,
  kind: z.enum(ALERT_KINDS).exactOptional(),
  all: z.boolean("not true or false").exactOptional(),
  until: z.union([z.string(), z.number()], "not a time"),
  reason: text,
  dryRun: z.boolean("not true or false").exactOptional(),
});
const DESTINATION = z.strictObject({ url: text, email: text });

/** Alerts that were delivered or wait, tests of destinations, and silences. */
export const alertEndpoints = {
  list: endpoint({ query: ALERTS_QUERY, answer: ALERTS }, async ({ client, query }) =>
    ok(await client.alerts.list(query)),
  ),
  undelivered: endpoint({ answer: UNDELIVERED }, async ({ client }) => ok(await client.alerts.undelivered())),
  test: endpoint({ body: DESTINATION, answer: TESTED, status: [202] }, async ({ client, body }) => {
    return { status: 202, body: await client.alerts.test(body) };
  }),
  silences: endpoint({ answer: SILENCES }, async ({ client }) =>
    ok({ silences: await client.alerts.silences() }),
  ),
  silence: endpoint({ body: SILENCE, answer: PUT_SILENCE, status: [201, 200] }, async ({ client, body }) => {
    const { dryRun, ...input } = body;
    if (dryRun) return ok({ holds: await client.alerts.previewSilence(input satisfies SilenceInput) });
    const silence = await client.alerts.silence(input satisfies SilenceInput);
    return { status: 201, body: { ...silence, holds: await client.alerts.previewSilence(input) } };
  }),
  unsilence: endpoint({}, async ({ client, path }) => {
    await client.alerts.unsilence(path["id"]!);
    return { status: 204 };
  }),
};
