import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Scheduler } from "@carillon/scheduler";
import { defineTask, Worker } from "@carillon/sdk";
import { alertWebhook } from "@carillon/sdk/http";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { harness } from "./harness.js";

const bench = harness("alerts", { shared: true });
const { cli, json, refusal } = bench;

const bad = defineTask("bad", {
  queue: "reports",
  payload: z.object({}).loose(),
  handler: () => Promise.reject(new Error("no paper")),
});

let worker: Worker;
let node: Scheduler;
let host: string;
const received: { kind: string }[] = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  received.push(JSON.parse(body));
  response.writeHead(request.url === "/closed" ? 410 : 200).end();
});

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { connection: bench.redis.url, namespace: bench.namespace, logger: SILENT };
  const hooks = alertWebhook({ signingKey: "a key of more than sixteen characters", allow: [host] });
  worker = new Worker({ ...connection, types: [bad, hooks] });
  node = new Scheduler(connection);
  await Promise.all([worker.start(), node.start()]);
  await bench.client.put(bad, {
    id: "t",
    owner: "acme",
    payload: {},
    schedule: { every: "365d" },
    alerts: [{ on: ["failed"], url: `http://${host}/hook` }],
  });
});
afterAll(async () => {
  await Promise.all([worker.stop({ within: 1_000 }), node.stop()]);
  server.closeAllConnections();
  server.close();
});

const alertsOf = async (...args: string[]) => (await json(["alerts", ...args])).alerts;
async function fail(id: string): Promise<void> {
  await bench.client.put(bad, { id, owner: "acme", payload: {}, schedule: { every: "365d" } });
  await bench.client.trigger(`acme/${id}`);
}

describe("alerts", () => {
  it("lists delivered alerts with their destinations, and silenced ones", async () => {
    expect((await cli(["alerts"])).stdout).toBe("No alerts.\n");
    await bench.client.trigger("acme/t");
    await eventually(async () => expect(await alertsOf()).toHaveLength(1));
    expect(await alertsOf()).toMatchObject([
      {
        kind: "failed",
        task: { owner: "acme", id: "t" },
        to: [host],
        error: expect.stringContaining("no paper"),
      },
    ]);
    await eventually(() => expect(received).toMatchObject([{ kind: "failed" }]));
    const args = ["--task", "acme/quiet", "--until", "2100-01-01", "--note", "INC-43", "--by", "ann"];
    const { stdout } = await cli(["silence", ...args]);
    const [, id = ""] = /^silence (\w+): owner acme, task quiet, until 2100-01-01T/.exec(stdout) ?? [];
    await fail("quiet");
    await eventually(async () => expect(await alertsOf("-n", "1")).toMatchObject([{ silenced: id, to: [] }]));
    expect(await alertsOf("--kind", "slow")).toEqual([]);
    const page = (await cli(["alerts"])).stdout;
    expect(page).toMatch(/^AT +KIND +QUEUE +TASK +TO +ABOUT\n/);
    expect(page).toMatch(new RegExp(`failed +reports +acme/quiet +silenced ${id} +Error: no paper`));
    expect(page).toMatch(
      new RegExp(`\nSILENCE +ALERTS +UNTIL +BY +NOTE\n${id} +owner acme, task quiet .* ann +INC-43\n`),
    );
    expect((await cli(["unsilence", id])).stdout).toBe(`ended ${id}\n`);
    expect(await refusal(["unsilence", id])).toMatchObject({ exit: 3, code: "SILENCE_NOT_FOUND" });
    const [{ cause = "" }] = (await alertsOf()) as [{ cause?: string }];
    expect((await cli(["silence", "--cause", cause])).stdout).toMatch(
      new RegExp(`^silence \\w+: cause ${cause}, until its cause is gone, 20.* or later\n`),
    );
    expect(await refusal(["silence", "--kind", "slow"])).toMatchObject({ exit: 2, field: "until" });
  });

  it("sends a test alert, and reports whether it was delivered", async () => {
    expect(await cli(["alerts", "test", `http://${host}/hook`])).toMatchObject({
      code: 0,
      stdout: "it arrived\n",
    });
    expect(received.at(-1)).toMatchObject({ kind: "test" });
    const closed = await cli(["alerts", "test", `http://${host}/closed`]);
    expect(closed).toMatchObject({ code: 1, stdout: expect.stringMatching(/^it did not arrive: .*410/) });
    // The failure of a delivery is an alert too, which a node takes in a moment.
    await eventually(async () =>
      expect((await json(["alerts"])).undelivered).toMatchObject({
        alerts: [],
        deliveries: [{ state: "failed", to: host, kinds: ["test"], error: expect.stringContaining("410") }],
      }),
    );
    expect(await refusal(["alerts", "test", "nobody"])).toMatchObject({ exit: 2, field: "target" });
  });

  it("are limited to the owner that a client is bound to", async () => {
    const [{ task }] = await alertsOf("--owner", "acme");
    expect(task.owner).toBe("acme");
    expect(await alertsOf("--owner", "beta")).toEqual([]);
    const made = await json(["silence", "--owner", "beta", "--until", "2100-01-01"]);
    expect(made).toMatchObject({ owner: "beta" });
    expect((await json(["alerts", "--owner", "acme"])).silences).toEqual([]);
    expect(await refusal(["unsilence", made.id, "--owner", "acme"])).toMatchObject({ exit: 3 });
    const other = ["silence", "--owner", "acme", "--task", "beta/t", "--until", "2100-01-01"];
    expect(await refusal(other)).toMatchObject({ exit: 2, field: "task" });
    expect(await refusal(["silence", "--until", "2100-01-01"])).toMatchObject({ exit: 2 });
    expect(await refusal(["silence", "--all", "--until", "2001-01-01"])).toMatchObject({
      field: "until",
    });
    const kind = ["silence", "--kind", "loud", "--until", "2100-01-01"];
    expect(await refusal(kind)).toMatchObject({ exit: 2, field: "kind" });
  });
});
