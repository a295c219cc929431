import { CarillonError, type TaskInput } from "@carillon/core";
import { z } from "zod";
import { type Operation, operation } from "../../src/operation.js";
import { operatorOf } from "../../src/operator.js";
import { NOW, nameOf, START } from "./world.js";

const shared = { role: "admin", reach: "namespace", logs: false, summary: "A control." } as const;
const task = (id: string, schedule: TaskInput["schedule"]): TaskInput => ({
  ...nameOf(id),
  type: "ring",
  schedule,
  payload: {},
});
const whole = (against: `${string}.${string}`, input: object) =>
  ({ known: "state", leaves: "whole", against: [[against, input]] }) as const;

/** Resumes tasks with a backfill of what they owe, and ends it if another call has resumed the task: the backfill may be that call's. */
const resume = operation({
  ...shared,
  http: "POST /controls/resume",
  once: whole("tasks.pauseMany", { tag: "paused" }),
  input: z.strictObject({}),
  async run({ client }) {
    const ops = operatorOf(client);
    for (const id of ["p1", "p2"]) {
      const name = nameOf(id);
      if ((await client.get(name)).state !== "paused") continue;
      const { backfills } = await ops.backfills.list();
      const there = backfills.find((one) => one.task.id === id && one.state === "running")?.id;
      const backfill = there ?? (await ops.backfills.start({ ...name, from: START + 1, to: NOW })).id;
      const { changed } = await ops.tasks.resume({ ...name, missed: "skip" });
      if (!changed && backfill) await ops.backfills.cancel({ id: backfill });
    }
  },
});

/** Writes what it has planned if each task is as it was seen: a later call that has nothing to do leaves no trace that it could meet. */
const apply = operation({
  ...shared,
  http: "POST /controls/apply",
  once: whole("controls.apply", { version: 3, hour: 10 }),
  example: { version: 2, hour: 11 },
  input: z.strictObject({ version: z.number(), hour: z.number() }),
  async run({ client }, { version, hour }) {
    const schedule = { cron: `0 ${hour} * * *` };
    const record = { ...task("record", { every: "1d" }), payload: { version } };
    const stored = await client.get(nameOf("record")).catch(() => undefined);
    const { version: newest = 1 } = Object(stored?.payload) as { version?: number };
    if (newest > version) throw new CarillonError("STALE_PLAN", "a newer version was applied.");
    const seen = await Promise.all(["s1", "s2"].map((id) => client.get(nameOf(id))));
    await client.put(record);
    for (const { id, revision, schedule: is } of seen)
      if (JSON.stringify(is) !== JSON.stringify(schedule))
        await client.put(task(id, schedule), { ifRevision: revision });
  },
});

/** Gives tasks a jitter and takes it back from those that nobody has changed since. Learns what it has replaced after its put. */
const spread = operation({
  ...shared,
  http: "POST /controls/spread",
  once: whole("tasks.put", { task: task("u1", { every: "2h" }) }),
  input: z.strictObject({}),
  async run({ client }) {
    const revisions = async (id: string) => (await operatorOf(client).tasks.revisions(nameOf(id))).revisions;
    const replaced = new Map<string, number | undefined>();
    for (const id of ["u1", "u2"]) {
      await client.update(nameOf(id), (one) => ({
        ...one,
        schedule: { ...one.schedule, jitter: "5m" } as typeof one.schedule,
      }));
      replaced.set(id, (await revisions(id))[0]?.number);
    }
    for (const [id, number] of replaced) {
      const [newest] = await revisions(id);
      if (newest && newest.number === number) await client.update(nameOf(id), () => newest.definition);
    }
  },
});

/** Operations with faults that the battery must find. */
export const CONTROLS: ReadonlyMap<string, Operation> = new Map<string, Operation>(
  Object.entries({ resume, apply, spread }).map(([verb, one]) => [
    `controls.${verb}`,
    one as unknown as Operation,
  ]),
);
