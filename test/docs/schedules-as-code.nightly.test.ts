import { readFileSync } from "node:fs";
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf, Reader } from "./page.js";

/* The blocks of docs/schedules-as-code.md, word for word, in their order. */

const PAGE = "docs/schedules-as-code.md";
const text = readFileSync(PAGE, "utf8");
const [first = "", back = "", staging = "", pull = ""] = blocksOf(PAGE, "sh");

let redis: RedisServer;
let client: Client;
let reader: Reader;
beforeAll(async () => {
  redis = await startRedis({ appendonly: true });
  client = new Client({ connection: redis.url });
  reader = new Reader("schedules-as-code", redis.url);
  for (const [i, code] of blocksOf(PAGE, "ts").entries()) {
    const file = /^\/\/ (\S+)\.ts\n/.exec(code)?.[1] ?? `program-${i}`;
    // Node.js runs the program, as plain JavaScript; the command loads the .ts, on each version.
    for (const end of ["js", "ts"]) reader.write(`${file}.${end}`, code);
  }
});
afterAll(async () => {
  await client.close();
  await redis.stop();
  reader.end();
});

it("plan, apply, drift and sets do what the page shows, from the shell and from a program", async () => {
  const said = await reader.run(first);
  expect(said).toMatch(/\+ create system\/invoices in queue billing\n(.*\n)* {2}at 06:00.*Europe\/Berlin/);
  expect(said).toMatch(/### Schedules of billing 42: 2 create/);
  expect(said).toMatch(
    /\napplied billing 42: 2 create.*\n(.*\n)*No drift in billing\.\nSET .*\nbilling +2 +42 /,
  );
  expect(await client.get("refunds")).toMatchObject({ state: "scheduled", retry: { attempts: 3 } });
  await client.put({ id: "invoices", type: "invoice", queue: "billing", schedule: { every: "1h" } });
  expect((await client.get("invoices")).set).toMatchObject({ drift: { at: expect.any(Number) } });
  await reader.run(`"${process.execPath}" program-1.js`);
  expect(await client.get("invoices")).toMatchObject({
    set: { name: "billing" },
    schedule: { cron: "0 6 1 * *" },
  });
});

it("a deploy is taken back by the id that its change shows", async () => {
  const { sets, changes } = operatorOf(client);
  const invoices = { id: "invoices", type: "invoice", queue: "billing", schedule: { cron: "0 9 * * *" } };
  await sets.apply({ set: "billing", version: "43", tasks: [invoices], protect: ["invoices"] });
  const id = (await changes.list({ limit: 1 })).changes[0]?.id ?? "";
  const said = await reader.run(back.replaceAll(/\bID\b/g, id));
  expect(said).toMatch(/\{"cron":"0 6 1 \* \*".*\} -> \{"cron":"0 9 \* \* \*"\}/);
  expect(said).toMatch(/\nbilling 42: 2 update.*\nrestored 2 tasks\n$/);
  expect((await client.get("invoices")).schedule).toMatchObject({ cron: "0 6 1 * *" });
});

it("an environment changes defaults and tasks, and leaves tasks out", async () => {
  await reader.run(staging, "staging");
  const other = new Client({ connection: redis.url, namespace: "staging" });
  expect((await other.list()).tasks).toMatchObject([
    { id: "invoices", state: "paused", schedule: { every: "1h" } },
    { id: "reminders", state: "scheduled" },
  ]);
  await other.close();
});

it("pull writes a file that plans as unchanged, and one that a new set adopts", async () => {
  await client.put({ id: "welcome", type: "mail", queue: "mail", schedule: { manual: true } });
  await reader.run(pull);
  expect(await reader.run("carillon plan --config pulled.json --exit-code")).toBe(
    "billing 42: 2 unchanged\n",
  );
  const adopt = /`(carillon apply --config .* --adopt '\*')`/.exec(text)?.[1] ?? "";
  await reader.run(adopt);
  expect((await operatorOf(client).sets.list()).sets.map(({ name }) => name)).toEqual(["billing", "mail"]);
});
