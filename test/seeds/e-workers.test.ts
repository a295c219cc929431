import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { describe, expect, test } from "vitest";
import { enqueued } from "../helpers.js";
import { PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();
const bell = { type: "ring", queue: "bells", schedule: { every: "1h" }, payload: { n: 1 } };

describe("E12 workers are tracked: a killed one is shown as dead, and a type that none handles is named", () => {
  test("a worker process reports its host, queues, types and run; killed with SIGKILL, it is dead after three beats", async () => {
    const client = stand.client();
    expect((await operatorOf(client).workers.list()).workers).toEqual([]);
    const first = stand.program("test/seeds/worker.mjs", { HEARTBEAT: "100ms" });
    await first.says({ working: true });
    await client.put({ ...bell, id: "t" });
    const triggered = enqueued(await client.trigger("t"));
    await first.says({ begun: 1 });
    const second = stand.program("test/seeds/worker.mjs");
    await second.says({ working: true });

    const of = async (program: typeof first) => {
      const found = (await operatorOf(client).workers.list()).workers.find(
        ({ pid }) => pid === program.child.pid,
      );
      if (found) return found;
      throw new Error("not listed");
    };
    const worker = await eventually(async () => {
      const found = await of(first);
      return found.alive && found.running === 1 && found;
    }, PATIENCE);
    expect(worker).toMatchObject({
      host: expect.any(String),
      queues: ["bells"],
      types: ["ring"],
      alive: true,
      runs: [{ run: triggered.run, queue: "bells", task: "system/t" }],
      versions: {
        carillon: expect.any(String),
        bullmq: expect.stringMatching(/^\d/),
        node: process.versions.node,
      },
    });
    expect(await client.runs.running()).toMatchObject([
      { id: triggered.run, worker: worker.id, host: worker.host, started: expect.any(Number) },
    ]);
    expect((await stand.carillon(["running"])).stdout).toContain(worker.id);

    await first.kill();
    const dead = await eventually(async () => {
      const found = await of(first);
      return found.state === "dead" && found;
    }, PATIENCE);
    expect(dead).toMatchObject({ alive: false, every: 100, beat: expect.any(Number) });
    // Three beats, and not later: its record says when it beat last.
    const key = `{${stand.namespace}}:workers`;
    const record = JSON.parse((await stand.admin.hget(key, worker.id)) ?? "");
    for (const [beats, state] of [
      [1, "ready"],
      [2, "silent"],
      [4, "dead"],
    ] as const) {
      const every = 600_000;
      const beat = (await stand.time()) - (beats - 0.25) * every;
      await stand.admin.hset(key, worker.id, JSON.stringify({ ...record, every, beat }));
      expect((await of(first)).state).toBe(state);
    }
    expect((await of(second)).alive).toBe(true);
    expect((await stand.carillon(["workers"])).stdout).toMatch(new RegExp(`^${worker.id} +dead `, "m"));

    // A worker that stops gracefully leaves the list.
    second.signal("SIGTERM");
    await second.says({ stopping: true });
    second.tell("go on");
    await second.ended;
    expect((await operatorOf(client).workers.list()).workers.map(({ id }) => id)).toEqual([worker.id]);
  });

  test("a put whose type no worker handles names it, and is stored", async () => {
    await stand.node().says({ msg: "node is running" });
    const nobody = await stand.client().put({ ...bell, id: "a" });
    expect(nobody).toMatchObject({ outcome: "created", warnings: [{ code: "NO_WORKER" }] });
    expect(nobody.warnings[0]?.message).toContain("queue bells");

    await stand.program("test/seeds/worker.mjs").says({ working: true });
    expect(await stand.client().put({ ...bell, id: "b" })).toMatchObject({
      outcome: "created",
      warnings: [],
    });
    const { stderr } = await stand.carillon(["put"], JSON.stringify({ ...bell, id: "c", type: "toll" }));
    expect(stderr).toContain("handles the type toll");
    expect(stderr).toContain("[NO_WORKER]");
    expect(await stand.client().get("c")).toMatchObject({ type: "toll" });
  });
});
