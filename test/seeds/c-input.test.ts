import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type Client, httpRequest, type Run, type TypedTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { startConsole } from "../../apps/console/test/harness.js";
import { Stand } from "./harness.js";

const stand = Stand.use();

interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A real server on this machine, with a private address: 127.0.0.1. */
async function target(answer: RequestListener = (_request, response) => response.end("done")) {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ method: request.method, path: request.url, headers: request.headers, body });
    answer(request, response);
  });
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stand.later(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, url: `http://${host}`, received, connections: () => connections };
}

describe("C9 a stored HTTP request is sent, and only to addresses that are allowed", () => {
  let client: Client;

  /** Puts and runs the task, with a worker that allows these addresses. */
  async function run(
    allow: string[],
    payload: TypedTask<ReturnType<typeof httpRequest>>["payload"],
  ): Promise<Run> {
    client = stand.client();
    const http = httpRequest({ allow });
    const worker = stand.worker([http]);
    const settled = new Promise((resolve) => worker.once("settled", resolve));
    await worker.start();
    await client.put(http, { id: "call", schedule: { every: "1h" }, payload });
    await client.trigger("call");
    await settled;
    const [done] = await client.runs.list("call");
    return done as Run;
  }

  it("method, URL, headers and body arrive; the expected status is a success with the answer as result", async () => {
    const { url, host, received } = await target((_request, response) =>
      response.writeHead(202).end("queued"),
    );
    const payload = {
      method: "PUT",
      url: `${url}/orders/7?x=1`,
      headers: { "X-Tenant": "acme" },
      body: { amount: 12 },
      expectStatus: 202,
    } as const;
    const done = await run([host], payload);
    expect(done).toMatchObject({ outcome: "succeeded", result: { status: 202, body: "queued" } });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({
      method: "PUT",
      path: "/orders/7?x=1",
      body: '{"amount":12}',
      headers: { "x-tenant": "acme", "content-type": "application/json", "carillon-run": done.id },
    });
    // It is stored like the payload of any task.
    expect((await client.get("call")).payload).toEqual(payload);
  });

  it("another status is a failure", async () => {
    const { url, host } = await target((_request, response) => response.writeHead(500).end());
    expect(await run([host], { url })).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("answered 500"),
    });
  });

  it("no answer in time is a failure", async () => {
    const { url, host, received } = await target(() => {});
    expect(await run([host], { url, timeout: "100ms" })).toMatchObject({ outcome: "failed" });
    expect(received).toHaveLength(1);
  });

  it.each([
    ["nothing", []],
    ["another address", ["10.0.0.0/8"]],
    ["another port", ["127.0.0.1:1"]],
  ])(
    "a private address that is not allowed is refused without a request: allowed is %s",
    async (_, allow) => {
      const { url, connections } = await target();
      const done = await run(allow, { url });
      expect(done).toMatchObject({ outcome: "failed", attempts: 1 });
      expect(done.error).toContain("127.0.0.1");
      expect(done.error).toContain("nothing was sent");
      expect(connections()).toBe(0);
    },
  );

  it("a name that resolves to a private address is refused", async () => {
    const { url, connections } = await target();
    const done = await run([], { url: url.replace("127.0.0.1", "localhost") });
    expect(done).toMatchObject({ outcome: "failed" });
    expect(done.error).toContain("nothing was sent");
    expect(connections()).toBe(0);
  });

  it("a redirect to one is not followed", async () => {
    const secret = await target();
    const { url, host } = await target((_request, response) =>
      response.writeHead(302, { Location: secret.url }).end(),
    );
    expect(await run([host], { url })).toMatchObject({ outcome: "failed" });
    expect(secret.connections()).toBe(0);
  });
});

describe("C10 a cron field like /5 is refused, with the hint */5", () => {
  const task = { id: "t", type: "work", queue: "bells", schedule: { cron: "/5 * * * *" } };
  const TEXT = 'schedule.cron: "/5" is not a value of the minute field. Did you mean */5?';
  const refused = { code: "INVALID_SCHEDULE", field: "schedule.cron", message: TEXT };

  it("by the SDK", async () => {
    const client = stand.client();
    await expect(client.put(task)).rejects.toMatchObject(refused);
    await expect(client.validate(task)).rejects.toMatchObject(refused);
    expect((await client.list()).tasks).toEqual([]);
  });

  it("by the HTTP API", async () => {
    const { api, stop } = await startConsole();
    stand.later(stop);
    expect(await api("POST", "/tasks", task)).toMatchObject({ status: 400, body: { error: refused } });
    expect((await api("GET", "/tasks")).body.tasks).toEqual([]);
  });

  it("by the command line", async () => {
    const put = await stand.carillon(["put"], JSON.stringify(task));
    expect(put).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean */5?") });
    const next = await stand.carillon(["next", "/5 * * * *"]);
    expect(next).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean */5?") });
  });

  it("in any field, alone or in a list", async () => {
    const client = stand.client();
    for (const [cron, field] of [
      ["* /5 * * *", "hour"],
      ["0,/15 * * * *", "minute"],
      ["/5 * * * * *", "second"],
    ] as const) {
      const put = client.put({ ...task, schedule: { cron } });
      await expect(put).rejects.toThrow(new RegExp(`not a value of the ${field}.* field.*Did you mean \\*/`));
    }
  });
});
