import { Client } from "@carillon/sdk";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { HTTP_OPERATIONS } from "./http.js";
import { operatorOf } from "./operator.js";

const { loads } = vi.hoisted(() => ({ loads: vi.fn() }));
vi.mock("../../store/src/bull/bullmq.js", (original) => {
  loads();
  return original();
});

const redis = sharedRedis();
let client: Client;
beforeAll(async () => {
  client = new Client({ connection: redis.url });
});
afterAll(async () => {
  await client.close();
});

it("a read loads no BullMQ, and a put neither; a trigger does", async () => {
  const name = { id: "a", queue: "q" };
  await client.put({ ...name, type: "report", schedule: { every: "1h" }, retry: { attempts: 2 } });
  const given = { ...name, time: 0, from: 0, to: 1, within: "1h", tasks: [], set: "s", name: "c" };
  const ops = operatorOf(client) as unknown as Record<
    string,
    Record<string, (input: object) => Promise<void>>
  >;
  for (const { name, noun, method, operation } of HTTP_OPERATIONS) {
    if (method !== "GET") continue;
    const fields = Object.entries(given).filter(([field]) => field in operation.input.shape);
    // Some find nothing of that name.
    await ops[noun]?.[name.slice(noun.length + 1)]?.(Object.fromEntries(fields)).catch((error: unknown) => {
      expect(error).toMatchObject({ code: expect.stringMatching(/_NOT_FOUND$|^INVALID_OPTION$/) });
    });
    expect(loads.mock.calls, name).toEqual([]);
  }
  await client.trigger("a");
  expect(loads).toHaveBeenCalledOnce();
});
