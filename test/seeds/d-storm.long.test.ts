import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { alertWebhook } from "@carillon/sdk/http";
import type { TestKit } from "@carillon/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
const MINUTE = 60_000;
const KEY = "a key of more than sixteen characters";

interface Message {
  readonly kind: string;
  readonly alerts?: readonly { readonly kind: string; readonly alerts?: number }[];
}

/** A receiver on this machine, and the requests that it got. */
const messages: Message[] = [];
const server = createServer(async (request, response) => {
  messages.push(JSON.parse(await text(request)));
  response.end();
});
let url: string;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
beforeEach(() => messages.splice(0));

/** The database of all tasks: while it is down, they fail. */
let down: boolean;
const [OWNERS, QUEUES] = [25, 10];
const TYPES = Array.from({ length: QUEUES }, (_, n) =>
  defineTask(`work${n}`, {
    queue: `bells${n}`,
    payload: anything,
    handler: (_, { occurrence: { task } }) => {
      if (task === "other") throw new Error("no ink");
      if (down) throw new Error(`connect ECONNREFUSED 10.0.0.${task.length}:5432`);
    },
  }),
);

async function night(tasks: number, every = "10m", alert: object = {}): Promise<TestKit> {
  down = true;
  const allow = [new URL(url).host];
  const kit = await stand.kit({ types: [...TYPES, alertWebhook({ signingKey: KEY, allow })] });
  const alerts = [{ on: ["failed", "recovered"], url, ...alert }];
  await operatorOf(kit.client).defaults.set({ scope: "all", policies: { alerts: alerts as never } });
  // Over six minutes, some each 20 s.
  const first = (n: number) => new Date(kit.now + MINUTE + (n % 18) * 20_000).toISOString();
  await kit.client.putMany(
    Array.from({ length: tasks }, (_, n) => ({
      ...{ id: `t${n}`, owner: `owner${n % OWNERS}`, type: `work${n % QUEUES}`, queue: `bells${n % QUEUES}` },
      ...{ payload: {}, schedule: { every, origin: first(n) } },
    })),
  );
  return kit;
}
describe("D22 alerts do not storm: a digest by cause, and its end is one message", () => {
  it("501 failures of one cause in six minutes are at most five messages, and one when they end", async () => {
    const kit = await night(501);
    await kit.advance("9m");
    expect(messages.length).toBeLessThanOrEqual(5);
    const digests = messages.flatMap(({ alerts = [] }) => alerts);
    const alone = messages.filter(({ kind }) => kind === "failed");
    expect(digests.reduce((sum, { alerts = 0 }) => sum + alerts, alone.length)).toBe(501);
    const [group] = (await operatorOf(kit.client).runs.failures()).groups;
    expect(group).toMatchObject({ runs: 501, owners: 25, queues: 10 });
    expect(digests.at(-1)).toMatchObject({
      ...{ kind: "failed", tasks: 501, owners: 25, queues: 10, open: 501 },
      cause: group?.cause?.id,
    });
    messages.length = 0;
    down = false;
    await kit.advance("10m");
    expect(messages).toMatchObject([
      { kind: "digest", alerts: [{ kind: "recovered", ended: ["failed"], alerts: 501, open: 0 }] },
    ]);
    // Each alert is listed, whatever was sent.
    const kept = await operatorOf(kit.client).alerts.list({ kind: "failed", limit: 1_000 });
    expect(kept.alerts).toHaveLength(501);
  });
});

describe("D23 a silence names a cause, until a time or until it is gone", () => {
  it("its alerts and their ends are listed, and not sent; those of another cause are", async () => {
    const kit = await night(10, "6h", { perMinute: 100 });
    const ops = operatorOf(kit.client);
    await kit.advance("2m");
    const [known] = (await ops.runs.failures()).groups;
    const before = messages.splice(0).length;
    expect(before).toBeGreaterThan(0);
    const silence = await ops.silences.put({ cause: known?.cause?.id });
    expect(silence).toMatchObject({ until: kit.now + 24 * 60 * MINUTE, untilGone: true });
    await kit.client.put(TYPES[0] as (typeof TYPES)[0], {
      ...{ id: "other", owner: "acme", payload: {} },
      schedule: { at: new Date(kit.now + MINUTE).toISOString() },
    });
    await kit.advance("7m");
    expect(messages.splice(0)).toMatchObject([{ kind: "failed", task: { id: "other" } }]);
    // Its alerts prolong it.
    const { silences } = await ops.silences.list();
    expect(silences[0]?.until).toBeGreaterThan(silence.until + MINUTE);
    const { alerts } = await ops.alerts.list({ kind: "failed" });
    expect(alerts.filter(({ cause }) => cause === known?.cause?.id)).toHaveLength(10);
    expect(alerts.filter(({ silenced }) => silenced === silence.id)).toHaveLength(10 - before);
    down = false;
    await kit.advance("6h");
    const ended = (await ops.alerts.list({ kind: "recovered" })).alerts;
    expect(ended.map(({ silenced }) => silenced)).toEqual(Array(10).fill(silence.id));
    expect(messages).toEqual([]);
    // A day without an alert of it: it is gone, and the next one is sent.
    await kit.advance("25h");
    expect((await ops.silences.list()).silences).toEqual([]);
    down = true;
    await kit.advance("6h");
    expect(messages).toHaveLength(10);
  });

  it("ends at its time if it has one, and needs one without a cause", async () => {
    const kit = await night(1);
    const ops = operatorOf(kit.client);
    await expect(ops.silences.put({ all: true })).rejects.toMatchObject({ field: "until" });
    await expect(ops.silences.put({ cause: "no" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    const until = kit.now + MINUTE;
    expect(await ops.silences.put({ cause: "e75bf74f", until })).not.toHaveProperty("untilGone");
    await kit.advance("61s");
    expect((await ops.silences.list()).silences).toEqual([]);
  });
});
