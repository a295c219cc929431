import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Console, startOnCluster } from "./harness.js";

let console_: Omit<Console, "redis">;
beforeAll(async () => {
  console_ = await startOnCluster();
});
afterAll(() => console_.stop());

test("the board works over the queues of a Redis Cluster, wherever their slots are", async () => {
  const queues = ["a", "b", "c", "d", "e", "f"];
  await console_.client.putMany(
    queues.map((queue) => ({ id: `of-${queue}`, type: "t", queue, schedule: { every: "1h" } })),
  );
  await eventually(async () => {
    await console_.board.refresh();
    expect((await console_.ask("/ready")).status).toBe(200);
  });
  for (const queue of queues) {
    const path = `/queues/api/queues/${queue}/job-schedulers/${encodeURIComponent(`system/of-${queue}`)}`;
    expect((await console_.admin("PUT", `${path}/run`)).status).toBe(200);
  }
  const { body } = await console_.admin("GET", "/queues/api/queues");
  expect(body.queues?.map(({ name, counts }) => [name, (counts as { waiting: number }).waiting])).toEqual(
    queues.map((queue) => [queue, 1]),
  );
  const listed = (await console_.admin("GET", "/queues/api/job-schedulers")).body.schedulers;
  expect(listed?.map(({ id, lastRunJobId }) => [id, typeof lastRunJobId])).toEqual(
    queues.map((queue) => [`system/of-${queue}`, "string"]),
  );
  expect((await console_.admin("GET", "/queues/api/redis/stats")).status).toBe(200);
});

test("the HTTP API works over a Redis Cluster", async () => {
  const schedule = { every: "1h" };
  for (const queue of ["g", "h"]) {
    const put = await console_.api("PUT", `/tasks/${queue}/system/of-${queue}`, { type: "t", schedule });
    expect(put.status).toBe(201);
  }
  expect((await console_.api("POST", "/tasks/g/system/of-g/trigger")).status).toBe(202);
  for (const path of ["/tasks?limit=1", "/runs/journal", "/nodes", "/queues", "/calendars"]) {
    expect((await console_.api("GET", path)).status).toBe(200);
  }
  expect((await console_.api("POST", "/tasks/validate", { schedule })).status).toBe(200);
});
