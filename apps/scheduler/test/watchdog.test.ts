import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, Worker } from "@carillon/sdk";
import { alertWebhook, verifySignature } from "@carillon/sdk/http";
import { eventually, startRedis } from "@carillon/testing";
import { expect, it, onTestFinished } from "vitest";
import { SILENT } from "../../../test/helpers.js";

const KEY = "a key of more than sixteen characters";

it("a heartbeat goes to the watchdog as long as a node enqueues and a worker handles it", async () => {
  const received: { body: string; signature: unknown }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ body, signature: request.headers["carillon-signature"] });
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redis = await startRedis({ appendonly: true });
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await redis.stop();
  });
  const connection = { connection: redis.url, logger: SILENT };
  await using client = new Client({ connection: redis.url });
  const startWorker = async () => {
    const worker = new Worker({ ...connection, types: [alertWebhook({ signingKey: KEY, allow: [host] })] });
    await worker.start();
    return worker;
  };
  await using node = new Scheduler({ ...connection, watchdog: { url: `http://${host}/ping`, every: "1s" } });
  // Two nodes share one task.
  await using other = new Scheduler({ ...connection, watchdog: { url: `http://${host}/ping`, every: "1s" } });
  await Promise.all([node.start(), other.start()]);
  let worker = await startWorker();
  await eventually(() => expect(received.length).toBeGreaterThan(1));
  const [{ body, signature } = { body: "", signature: "" }] = received;
  expect(JSON.parse(body)).toEqual({ kind: "heartbeat", namespace: "carillon" });
  expect(verifySignature(body, String(signature), KEY)).toBe(true);
  // The task is not listed among the tenants' tasks, and leaves no undelivered alert.
  expect((await client.list()).tasks).toEqual([]);
  expect((await client.list({ deliveries: true })).tasks.map(({ id }) => id)).toEqual(["watchdog"]);
  expect((await operatorOf(client).alerts.undelivered()).deliveries).toEqual([]);

  await worker.stop();
  const sent = received.length;
  await eventually(async () => {
    const skipped = await client.runs.skips({ id: "watchdog", queue: "carillon-alerts" });
    expect(skipped).toMatchObject([{ reason: "behind" }]);
  });
  expect(received).toHaveLength(sent);
  worker = await startWorker();
  await eventually(() => expect(received.length).toBeGreaterThan(sent));
  await worker.stop();
});

it("refuses text that is not an address", () => {
  const start = (watchdog: object) => () =>
    new Scheduler({ connection: "redis://localhost:1", watchdog: watchdog as never });
  expect(start({ url: "ftp://x" })).toThrow(/^watchdog\.url: not an address/);
  expect(start({ url: "https://x.example", every: "1ms" })).toThrow(/^watchdog\.every/);
  expect(start({ url: "https://x.example", evry: "1m" })).toThrow(/evry/);
});
