import { Secret } from "@carillon/core";
import type { AlertFormat, AlertTargetInput } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { beforeAll, expect, test } from "vitest";
import { ADMIN, ownConsole } from "./harness.js";

/** Part of each secret. */
const SECRET = "s3cret0fade5tination";
const url = `https://hooks.example.com/services/T0/${SECRET}`;
/** One of each format, with each of its secrets. The compiler asks for a new one. */
const ALL: { readonly [Format in AlertFormat]: AlertTargetInput } = {
  json: { format: "json", url },
  slack: { format: "slack", url },
  teams: { format: "teams", url },
  pagerduty: { format: "pagerduty", routingKey: `${SECRET}abcdefghijkl` },
  template: { format: "template", url },
  email: { format: "email", email: "ops@example.com" },
};
const FORMATS = Object.keys(ALL) as AlertFormat[];

const console_ = ownConsole();
const task = (to: AlertTargetInput, more: object = {}) => ({
  id: "a",
  type: "t",
  queue: "q",
  schedule: { every: "1h" },
  alerts: [{ on: ["failed" as const], ...to }],
  ...more,
});

beforeAll(async () => {
  const { client } = console_;
  const ops = operatorOf(client);
  for (const [format, to] of Object.entries(ALL)) {
    await client.put(task(to, { id: format }));
    await client.put(task(to, { id: format, description: "a revision" }));
    await client.put(task(to, { id: `${format}-deleted` }));
    await client.delete({ queue: "q", id: `${format}-deleted` });
    await ops.defaults.set({ scope: `type:${format}`, policies: { alerts: [{ on: ["failed"], ...to }] } });
    const [target = ""] = Object.values(to).slice(1);
    await ops.alerts.test({ format: format as AlertFormat, target: String(target) });
  }
  await console_.board.refresh();
});

const ask = async (path: string, token: string) => {
  const answer = await console_.ask(path, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, text: await answer.text() };
};

test("secrets of destinations are in no answer of the API and of Bull Board, even for an admin", async () => {
  const { deliveries } = await console_.ops.alerts.undelivered();
  expect(deliveries).toHaveLength(FORMATS.length);
  const tasks = [
    ...FORMATS.map((id) => ({ queue: "q", owner: "system", id })),
    ...deliveries.map(({ owner, id }) => ({ queue: "carillon-alerts", owner, id })),
  ];
  const runs = (await console_.client.runs.journal({ queue: "carillon-alerts" })).runs.map(({ id }) => id);
  const active = await Promise.all(tasks.map((one) => console_.client.runs.list(one)));
  const ids = [...runs, ...active.flat().map(({ id }) => id)];
  const paths = HTTP_OPERATIONS.filter(({ method }) => method === "GET").flatMap(({ path }) =>
    path.includes(":queue/:owner/:id")
      ? tasks.map(({ queue, owner, id }) => path.replace(":queue/:owner/:id", `${queue}/${owner}/${id}`))
      : path.startsWith("/runs/:")
        ? ids.map((id) => path.replace(/:\w+/, encodeURIComponent(id)))
        : [path.replace(/:\w+/g, "q")],
  );
  const all = [
    ...paths.map((path) => `/api/v1${path}`),
    "/api/v1/tasks?deliveries=true&limit=1000",
    ...["q", "carillon-alerts"].map((queue) => `/queues/api/queues?activeQueue=${queue}`),
    "/queues/api/job-schedulers",
    ...ids.flatMap((id) => [
      `/queues/api/queues/carillon-alerts/${id}`,
      `/queues/api/queues/carillon-alerts/${id}/flow?root=node`,
    ]),
  ];
  const placeholders = new Set<string>();
  for (const path of all) {
    const { text } = await ask(path, ADMIN);
    expect([path, text.includes(SECRET)]).toEqual([path, false]);
    if (text.includes("[hidden ")) placeholders.add(path.replace(/\/[\w@.%-]+$/, ""));
  }
  // Each way out that has destinations was tried: tasks, lists, revisions, changes, defaults, deleted tasks, Bull Board.
  expect(placeholders.size).toBeGreaterThan(8);
});

test("a put of what was read keeps the stored secrets, in any order, and no placeholder is ever stored", async () => {
  const { client, admin } = console_;
  const other = "https://hooks.example.com/other";
  const alerts = [ALL.slack, ALL.pagerduty, { url: other }].map((to) => ({ on: ["failed" as const], ...to }));
  await client.put(task(ALL.json, { id: "edited", alerts }));
  const { body } = await admin("GET", "/api/v1/tasks/q/system/edited");
  const [slack, pagerduty, json] = (body as unknown as { alerts: object[] }).alerts;
  const change = { alerts: [json, { ...pagerduty, on: ["slow"] }, slack], description: "edited" };
  const { id, queue, type, schedule } = task(ALL.json, { id: "edited" });
  const put = await admin("PUT", "/api/v1/tasks/q/system/edited", { id, queue, type, schedule, ...change });
  expect(put.status).toBe(200);
  const secrets = async () =>
    ((await client.get({ queue: "q", id: "edited" })).alerts ?? []).flatMap((one) =>
      Object.values(one).flatMap((value) => (value instanceof Secret ? value.reveal() : [])),
    );
  expect(await secrets()).toEqual([other, `${SECRET}abcdefghijkl`, url]);
  await client.update({ queue: "q", id: "edited" }, (definition) => ({ ...definition, priority: 3 }));
  expect(await secrets()).toEqual([other, `${SECRET}abcdefghijkl`, url]);
  // Elsewhere nothing is stored under the placeholder.
  const elsewhere = { id: "new", queue, type, schedule, alerts: [slack] };
  expect((await admin("PUT", "/api/v1/tasks/q/system/new", elsewhere)).body.error).toMatchObject({
    code: "INVALID_TASK",
    field: "alerts[0].url",
    remedy: "Give the secret itself.",
  });
  // So do defaults.
  const ops = operatorOf(client);
  const shown = JSON.parse(JSON.stringify((await ops.defaults.list()).defaults["type:slack"]));
  const set = { scope: "type:slack" as const, policies: { ...shown, linger: "1d" } };
  expect(await ops.defaults.set(set)).toEqual({ changed: true });
  expect(await ops.defaults.set(set)).toEqual({ changed: false });
});

test("secrets of destinations are in no log: neither as text, nor in templates, nor inspected", async () => {
  const { inspect } = await import("node:util");
  for (const format of FORMATS) {
    const read = await console_.client.get({ queue: "q", id: format });
    const texts = [
      inspect(read, { depth: 9, showHidden: true }),
      JSON.stringify(read),
      `${Object.values(read.alerts?.[0] ?? {})}`,
    ];
    for (const text of texts) expect(text).not.toContain(SECRET);
  }
});
