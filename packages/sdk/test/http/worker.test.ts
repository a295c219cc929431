import { Client, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../../test/helpers.js";
import { statusOf } from "../../../ops/test/in-words.js";
import { alertWebhook, httpRequest } from "../../src/http/index.js";
import { KEY, Target } from "./bench.js";

describe("a task that is a stored request", () => {
  const redis = sharedRedis();
  let target: Target;
  let client: Client;
  beforeAll(async () => {
    target = await Target.open();
    client = new Client({ connection: redis.url });
  });
  afterAll(async () => {
    await client.close();
    await target.close();
  });

  async function run(id: string, allow: string[]) {
    const type = httpRequest({ allow });
    const worker = new Worker({ connection: redis.url, types: [type], logger: SILENT });
    const settled = new Promise((resolve) => worker.once("settled", resolve));
    await worker.start();
    try {
      await client.put(type, { id, payload: { url: target.url }, schedule: { every: "1h" } });
      await client.trigger({ queue: type.queue, id });
      await settled;
      return (await client.runs.list({ queue: type.queue, id }))[0];
    } finally {
      await worker.stop();
    }
  }

  it("is sent by a worker, with the answer as the run's result", async () => {
    const done = await run("allowed", [target.host]);
    expect(done).toMatchObject({ outcome: "succeeded", result: { status: 200, body: "done" } });
    expect(target.received[0]?.headers).toMatchObject({
      "carillon-task": "system/allowed",
      "carillon-run": done?.id,
      "carillon-fence": expect.stringMatching(/^[1-9]\d*$/),
    });
  });

  it("fails, and sends nothing, if the address is private and not on the list", async () => {
    const before = target.connections;
    const refused = await run("refused", ["10.0.0.0/8"]);
    expect(refused).toMatchObject({ outcome: "failed" });
    expect(refused?.error).toContain('"127.0.0.1" is a loopback address; nothing was sent.');
    expect(target.connections).toBe(before);
  });

  it("is a note of the status while its receiver refuses alerts, also between tries, with the host", async () => {
    const refusing = await Target.open((_, response) => response.writeHead(500).end());
    const type = alertWebhook({ allow: [refusing.host], signingKey: KEY });
    const worker = new Worker({ connection: redis.url, types: [type], logger: SILENT });
    await worker.start();
    const alert = { kind: "failed", at: 1 };
    const retry = { attempts: 2, delay: "1h" } as const;
    const to = { format: "json", url: refusing.url };
    const payload = { to, namespace: "n", alerts: [alert] };
    const schedule = { at: new Date(Date.now() + 3_600_000).toISOString() };
    await client.put(type, { id: "alert-1", payload, schedule, retry });
    await client.trigger({ queue: type.queue, id: "alert-1" });
    await eventually(async () =>
      expect((await statusOf(client)).notes.filter(({ code }) => code === "ALERTS_FAIL")).toMatchObject([
        {
          message: `1 delivery of alerts has failed or waits for another try, to ${refusing.host}: HttpError: ${refusing.host} answered 500.`,
          remedy: expect.stringContaining("carillon alerts test URL"),
        },
      ]),
    );
    const [run] = await client.runs.list({ queue: type.queue, id: "alert-1" });
    expect(run?.state).not.toBe("final");
    expect((await statusOf(client)).reasons.map(({ queue }) => queue)).not.toContain(type.queue);
    await worker.stop();
    await client.delete({ queue: type.queue, id: "alert-1" });
    expect((await statusOf(client)).notes).toEqual([]);
    await refusing.close();
  });

  it("is refused at the put if its payload is invalid", async () => {
    await expect(
      client.put(httpRequest(), {
        id: "bad",
        payload: { url: "https://example.com/", headers: { Host: "other" } },
        schedule: { every: "1h" },
      }),
    ).rejects.toMatchObject({ code: "INVALID_PAYLOAD", field: "payload.headers" });
  });
});
