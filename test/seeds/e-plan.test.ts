import { type AnswerTo, operatorOf } from "@carillon/ops";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { storeOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

const stand = Stand.use();

const HOURS = 8;
const inQueue = (id: string, schedule: TaskInput["schedule"], rest: Partial<TaskInput> = {}): TaskInput => ({
  id,
  type: "work",
  queue: id < "m" ? "bells" : "gongs",
  schedule,
  payload: {},
  ...rest,
});
const TASKS: TaskInput[] = [
  inQueue("interval", { every: "7m" }),
  inQueue("lunch", { cron: "*/20 9-12 * * *", timezone: "Asia/Kolkata" }),
  inQueue("spread", { every: "1h", jitter: "30m" }),
  inQueue("thrice", { every: "25m", maxRuns: 3 }),
  inQueue("once", { at: "2026-01-01T05:06:07Z" }),
  inQueue("after", { every: "50m", anchor: "finish" }),
  inQueue("but-not", { every: "30m", except: [{ calendar: "*-*-* 02..04:*:*" }] }),
  inQueue("union", { any: [{ cron: "15 * * * *" }, { calendar: "*-*-* 03:00" }] }),
  inQueue("later", { at: "2026-01-01T08:00:00Z" }),
  inQueue("never", { every: "5m" }, { enabled: false }),
];

describe("E9 forecast and upcoming list equal the later runs", () => {
  const named = ({ task, nominal, due }: Upcoming) => `${due} ${task.id} of ${nominal}`;

  it("the forecast of the next hours, and the upcoming list in its order, equal the later runs", async () => {
    const started: string[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: (_payload, { occurrence }) => void started.push(`${occurrence.due} ${occurrence.task}`),
    });
    const queues = ["bells", "gongs"];
    const kit = await stand.kit({ types: [type], queues, start: "2026-01-01T00:00:30Z", nodes: 2 });
    const { occurrences } = operatorOf(kit.client);
    await kit.client.putMany(TASKS);
    const forecast = (await occurrences.upcoming({ within: `${HOURS}h` })).upcoming;
    expect(forecast.length).toBeGreaterThan(100);
    expect(forecast.map(({ due }) => due)).toEqual(forecast.map(({ due }) => due).sort((a, b) => a - b));
    const { upcoming } = await occurrences.upcoming();
    // All tasks but the disabled one, each with its next time.
    const enabled = TASKS.map(({ id }) => id).filter((id) => id !== "never");
    expect(upcoming.map(({ task }) => task.id).sort()).toEqual(enabled.sort());
    for (const { task, due } of upcoming) expect((await kit.client.get(task)).nextExecution).toBe(due);
    const three = (await occurrences.upcoming({ limit: 3 })).upcoming;
    expect(three.map(named)).toEqual(upcoming.slice(0, 3).map(named));

    await kit.advance(`${HOURS}h`);
    const happened: Upcoming[] = [];
    for (const { id, queue } of TASKS) {
      const { runs, skips, task } = await kit.history({ id, queue });
      expect(skips).toEqual([]);
      for (const { nominal, enqueued } of runs) happened.push({ task, nominal, due: enqueued });
    }
    expect(happened.map(named).sort()).toEqual(forecast.map(named).sort());
    const firsts = new Set(upcoming.map(({ task, due }) => `${due} ${task.id}`));
    expect(started.filter((start) => firsts.has(start))).toEqual([...firsts]);
    // Nothing ran before the first of the list.
    expect(started[0]).toBe(`${upcoming[0]?.due} ${upcoming[0]?.task.id}`);
  });
});

describe("E10 an unknown task type is refused and nothing is stored", () => {
  const schedule = { every: "1h" };
  const good: TaskInput = { id: "good", type: "report", queue: "reports", schedule };
  const bad: TaskInput = { id: "bad", type: "rm-rf", queue: "elsewhere", schedule };
  /** Every key of the namespace with its value. Keys that other tests left may expire meanwhile. */
  const everything = async () => {
    const keys = (await stand.admin.keys(`{${stand.namespace}[:}]*`)).sort();
    return Promise.all(keys.map(async (key) => [key, (await stand.admin.dumpBuffer(key))?.toString("hex")]));
  };

  it("any client refuses it in each kind of put, and so does the command line", async () => {
    const operator = stand.client();
    await operatorOf(operator).types.allow({ types: ["report", "mail"] });
    expect((await operatorOf(operator).types.list()).types).toEqual(
      expect.arrayContaining(["report", "mail"]),
    );
    await operator.put(good);
    const before = await everything();

    const user = stand.client({ owner: "acme" });
    const refused = { code: "UNKNOWN_TASK_TYPE", field: "type" };
    const type = defineTask("rm-rf", { queue: "elsewhere", payload: anything, handler: () => {} });
    await expect(user.put(bad)).rejects.toMatchObject(refused);
    await expect(user.put(type, { id: "bad", schedule, payload: {} })).rejects.toMatchObject(refused);
    await expect(user.validate(bad)).rejects.toMatchObject(refused);
    await expect(user.enqueue(type, {})).rejects.toMatchObject(refused);
    await expect(user.enqueue(type, {}, { delay: 60_000 })).rejects.toMatchObject(refused);
    // A task that exists keeps its type.
    await expect(operator.put({ ...good, type: "rm-rf" })).rejects.toMatchObject(refused);
    const cli = await stand.carillon(["put", "--json"], JSON.stringify(bad));
    expect(JSON.parse(cli.stderr)).toMatchObject({ error: refused });
    expect(cli.code).toBe(2);
    expect(await everything()).toEqual(before);
  });

  it("none of many tasks is stored if one has an unknown type", async () => {
    const client = stand.client();
    await operatorOf(client).types.allow({ types: ["report"] });
    const before = await everything();
    const put = client.putMany([good, { ...good, id: "another" }, bad]);
    await expect(put).rejects.toMatchObject({ code: "UNKNOWN_TASK_TYPE" });
    expect((await client.list()).tasks.map(({ id }) => id)).toEqual([]);
    await expect(put).rejects.toMatchObject({ field: "[2].type" });
    expect(await everything()).toEqual(before);
  });

  it("a bound client cannot extend the list, and can pause its task", async () => {
    const client = stand.client();
    await operatorOf(client).types.allow({ types: ["report"] });
    const user = new Client({ store: storeOf(client), owner: "acme" });
    await expect(operatorOf(user).types.allow({ types: ["rm-rf"] })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    await user.put({ ...good, enabled: false });
    expect(await user.get("good")).toMatchObject({ state: "paused", owner: "acme" });
    expect((await user.get("good")).nextExecution).toBeUndefined();
  });
});

describe("E21 an interval or a time limit in seconds is stored with a warning of both readings", () => {
  it.each([
    [
      { schedule: { every: 3600 } },
      "schedule.every: 3600 is in milliseconds, 3s600ms. In seconds it would be 1h.",
    ],
    [{ timeLimit: 300 }, "timeLimit: 300 is in milliseconds, 300ms. In seconds it would be 5m."],
    [{ schedule: { every: "1h" }, timeLimit: "5m" }, undefined],
  ])("%j", async (given, message) => {
    const client = stand.client();
    const { outcome, warnings } = await client.put(inQueue("agent", { every: "1h" }, given));
    const units = warnings.filter(({ code }) => code === "LOOKS_LIKE_SECONDS");
    expect([outcome, units.map((one) => one.message)]).toEqual(["created", message ? [message] : []]);
  });
});
