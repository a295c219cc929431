import { operatorOf } from "@carillon/ops";
import { defineTask, type TaskInput } from "@carillon/sdk";
import { type TestKit, testKit } from "@carillon/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { harness, task } from "./harness.js";

const DAY = 86_400_000;
const HOUR = 3_600_000;
const midnight = Math.floor(Date.now() / DAY) * DAY;
/** The UTC date `ago` days before today. */
const date = (ago: number) => new Date(midnight - ago * DAY).toISOString().slice(0, 10);

const bench = harness("explain", { shared: true });
const { cli, json, refusal } = bench;

const payload = z.object({ fails: z.boolean(), slow: z.boolean() }).partial();
const report = defineTask("report", {
  queue: "reports",
  payload,
  async handler({ fails, slow }, { signal, log }) {
    log("at it");
    const hour = new Date().getUTCHours();
    await kit.sleep(slow && hour === 6 ? "90m" : "90s", { signal });
    if (fails) throw new Error("no paper at 2026-01-01T00:00:00Z\n  at the printer");
    return {};
  },
});

let kit: TestKit;

/** Creates runs of the two days that end at the last midnight. */
beforeAll(async () => {
  kit = await testKit({
    types: [report],
    start: midnight - 2 * DAY,
    redis: bench.redis,
    namespace: bench.namespace,
  });
  const put = (id: string, schedule: TaskInput["schedule"], more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "report", queue: "reports", schedule, ...more });
  await put("good", { cron: "0 9 * * *", timezone: "Asia/Tokyo" });
  await put("bad", { cron: "0 5 * * *" }, { payload: { fails: true }, retry: { attempts: 3, delay: "10s" } });
  const hourly = { every: "1h", start: `${date(1)}T05:00:00Z` };
  const morning = { ...hourly, end: `${date(1)}T14:00:00Z` };
  await put("busy", hourly, { payload: { slow: true } });
  await put("patient", morning, { payload: { slow: true }, overlap: "queue-one" });
  await put("skips", morning, { catchUp: "skip" });
  await put("catches-up", morning);
  await put("resumed", morning);
  await put("spread", { ...morning, jitter: "10m" });
  await kit.advance("32h30m");
  for (const id of ["skips", "catches-up", "resumed"]) await kit.client.pause(id);
  await kit.advance("5h");
  for (const id of ["skips", "catches-up"]) await kit.client.resume(id, { missed: "catch-up" });
  await kit.client.resume("resumed", { by: "eve" });
  await kit.advanceTo(midnight - 1);
  await kit.close();
});

/** The text for people, and the verdict for programs. */
async function explain(...args: string[]): Promise<{ text: string; verdict: string; stderr: string }> {
  const [{ code, stdout, stderr }, { verdict }] = await Promise.all([
    cli(["explain", ...args]),
    cli(["explain", ...args, "--json"]).then((answer) => JSON.parse(answer.stdout)),
  ]);
  expect(code).toBe(0);
  return { text: stdout, verdict, stderr };
}

describe("without a time", () => {
  it("explains what is due now, also as `now`", async () => {
    for (const args of [["good"], ["good", "now"]]) {
      const { text, stderr } = await explain(...args);
      expect(stderr).toBe("");
      expect(text).toMatch(/\nDUE {2}It is due since .*, and not decided yet: no scheduler node is alive\./);
    }
  });
});

describe("an occurrence that ran", () => {
  it("is explained from claim to end, in both zones", async () => {
    const { text, verdict, stderr } = await explain("good", `${date(1)} 09:00`);
    expect([verdict, stderr]).toEqual(["enqueued", ""]);
    expect(text.split("\n")).toEqual([
      "task      system/good in queue reports",
      "schedule  at 09:00, every day (Asia/Tokyo)",
      expect.stringMatching(
        new RegExp(`^time      \\w{3} ${date(1)} 09:00:00 Asia/Tokyo \\(${date(1)}T00:00:00Z\\), .* ago$`),
      ),
      "",
      "SUCCEEDED  It was enqueued on time, 0 ms after it was due, and succeeded after 1 min 30 s.",
      "",
      "LOCAL     UTC              AFTER",
      expect.stringMatching(/^09:00:00 {2}00:00:00Z {8}\+0 ms {2}node-1 enqueued it \(schedule\), 0 ms/),
      expect.stringMatching(
        /^09:00:00 {2}00:00:00Z {8}\+0 ms {2}attempt 1 started on .*, process \d+, worker /,
      ),
      "09:01:30  00:01:30Z  +1 min 30 s  it ended: succeeded",
      "",
      expect.stringMatching(/^run {7}good@/),
      expect.stringMatching(/^printed {3}1 line: carillon run good@/),
      "policies  overlap skip, catch-up one",
      "",
    ]);
  });

  it("shows each failed attempt with its error unchanged", async () => {
    const { text } = await explain("bad", `${date(1)} 05:00`);
    expect(text).toContain("FAILED  It was enqueued on time, 0 ms after it was due, and failed after ");
    expect(text).toContain(" and 3 attempts: Error: no paper at 2026-01-01T00:00:00Z.\n");
    expect(text.match(/attempt \d started/g)).toHaveLength(3);
    expect(text).toMatch(/it ended: failed: Error: no paper at 2026-01-01T00:00:00Z\n/);
    expect(text).not.toContain("at the printer");
  });

  it("is late because it waited", async () => {
    const { text } = await explain("patient", `${date(1)} 07:00`);
    expect(text).toContain("SUCCEEDED  It was enqueued late, 30 min after it was due, and succeeded after");
    expect(text).toContain("due, but the run of 06:00:00 was not over (now succeeded)");
    expect(text).toContain("overlap queue-one");
  });

  it("is late because others were missed too", async () => {
    const { text } = await explain("catches-up", `${date(1)} 13:00`);
    expect(text).toContain("SUCCEEDED  It was caught up on 30 min after it was due, and succeeded");
    expect(text).toContain("for all since 09:00:00");
  });

  it("is later by its jitter", async () => {
    const { text } = await explain("spread", `${date(1)} 10:00`);
    expect(text).toMatch(/\njitter {4}due at 10:0\d:\d\d\.?\d*, .* later\n/);
  });
});

describe("an occurrence that did not run", () => {
  it("was blocked by an open run", async () => {
    const { text, verdict } = await explain("busy", `${date(1)}T07:00:00Z`, "-z", "Asia/Tokyo");
    expect(verdict).toBe("skipped");
    expect(text).toContain("SKIPPED  It was skipped: an earlier run was not over");
    expect(text).toMatch(
      /\n16:00:00 {2}07:00:00Z {2}\+0 ms {2}node-1 skipped it \(overlap\); in the way was the run of 15:00:00/,
    );
    expect(text).toMatch(
      /\nin the way {2}busy@\S+: enqueued 15:00:00, started 15:00:00 on .*, process \d+, succeeded 16:30:00\n/,
    );
  });

  it("was too late", async () => {
    const { text, verdict } = await explain("skips", `${date(1)}T10:00:00Z`);
    expect(verdict).toBe("skipped");
    expect(text).toMatch(
      /\n13:30:00Z {2}\+3 h 30 min {2}node-1 skipped it \(missed\), with all from 09:00:00 to 13:00:00\n/,
    );
    expect(text).toContain("catch-up skip");
  });

  it("fell into a pause of the task", async () => {
    const { text } = await explain("resumed", `${date(1)}T10:00:00Z`);
    expect(text).toContain("SKIPPED  It was skipped: it fell due while the task was paused");
    expect(text).toContain("eve skipped it (paused)");
  });

  it("lies before the first put of the task", async () => {
    const { text, verdict } = await explain("good", `${date(9)} 09:00`);
    expect(verdict).toBe("before-task");
    expect(text).toContain("BEFORE THE TASK  The task was put later, at ");
  });

  it("was decided by nobody", async () => {
    const { text, verdict } = await explain("busy", new Date(midnight).toISOString());
    expect(verdict).toBe("due");
    expect(text).toContain("DUE  It is due since 00:00:00");
    expect(text).toContain("no scheduler node is alive");
  });

  it("is not a time of the schedule: the nearest ones are named", async () => {
    const { text, verdict } = await explain("good", `${date(1)} 08:30`);
    expect(verdict).toBe("no-occurrence");
    expect(text).toContain("NO SUCH TIME  ");
    const before = `${date(2)} 09:00:00 Asia/Tokyo (${date(2)}T00:00:00Z), 23 h 30 min earlier`;
    expect(text).toMatch(new RegExp(`\nbefore {4}\\w{3} ${before.replace(/[()]/g, "\\$&")}\n`));
    expect(text).toMatch(new RegExp(`\nafter {5}\\w{3} ${date(1)} 09:00:00 Asia/Tokyo .*, 30 min later\n`));
  });
});

describe("an occurrence to come", () => {
  it("is planned", async () => {
    await bench.client.put(
      task("soon", { queue: "reports", schedule: { cron: "0 9 * * *", timezone: "Asia/Tokyo" } }),
    );
    const { nextExecution } = await bench.client.get("soon");
    const { text, verdict } = await explain("soon", String(nextExecution));
    expect(verdict).toBe("planned");
    expect(text).toMatch(/PLANNED {2}It is due at 09:00:00, in \d+ /);
    expect(text).toContain("nodes     none is alive: nothing runs until one starts");
    expect((await explain("soon", "tomorrow", "09:00")).verdict).toBe("planned");
  });

  it("is held while its task is paused", async () => {
    await bench.client.put(task("held", { queue: "reports" }));
    await bench.client.pause("held", { by: "ann", note: "upstream is down" });
    const { text, verdict } = await explain("held", new Date(midnight + 3 * DAY).toISOString());
    expect(verdict).toBe("held");
    expect(text).toContain("PAUSED  The task is paused since ");
    expect(text).toMatch(/\npaused .* by ann: upstream is down\n/);
  });

  it("waits for the run that blocks it", async () => {
    await bench.client.put(task("queues", { queue: "reports", overlap: "queue-one" }));
    await bench.client.trigger("queues");
    expect(await bench.client.trigger("queues")).toMatchObject({ outcome: "queued" });
    const { pending } = await json(["show", "queues"]);
    const { text, verdict } = await explain("queues", String(pending[0].nominal));
    expect(verdict).toBe("waiting");
    expect(text).toContain("WAITING  It waits: ");
    const [run] = await bench.client.runs.list("queues");
    const asked = await explain("queues", String(run?.nominal));
    expect(asked.text).toMatch(
      /QUEUED {2}It was asked for by hand, and has been waiting for [\d.]+ \w+: no worker works the queue reports\./,
    );
    expect(text).toContain("The run in its way waits: no worker works the queue reports.");
    await operatorOf(bench.client).queues.pause({ queue: "reports", note: "deploy" }, { by: "ann" });
    const paused = await explain("queues", String(run?.nominal));
    expect(paused.text).toMatch(
      /waiting for [\d.]+ \w+: the queue is paused \(by ann since [\d: .-]+: deploy\)\./,
    );
    await operatorOf(bench.client).queues.resume({ queue: "reports" });
  });
});

describe("the time argument", () => {
  it("may be several words, or a time of today", async () => {
    const { time } = await json(["explain", "good", date(1), "09:00"]);
    expect(time).toBe(midnight - DAY);
    const today = await json(["explain", "busy", "07:00"]);
    expect([today.time % DAY, Date.now() - today.time < DAY]).toEqual([7 * HOUR, true]);
  });

  it("gets a note on stderr if the clock shows it twice", async () => {
    const { stderr } = await cli(["explain", "busy", "2026-10-25 02:30", "-z", "Europe/Berlin"]);
    expect(stderr).toContain("the clock shows 2026-10-25 02:30 twice");
  });

  it.each([
    ["no time", ["explain", "good", "noon"], "INVALID_OPTION"],
    ["an unknown zone", ["explain", "good", "09:00", "-z", "Mars/Base"], "INVALID_TIMEZONE"],
  ])("is refused with 2: %s", async (_, args, code) => {
    expect(await refusal(args)).toMatchObject({ exit: 2, code });
  });

  it("is refused with 3 without a task", async () => {
    expect(await refusal(["explain", "none", "09:00"])).toMatchObject({ exit: 3, code: "TASK_NOT_FOUND" });
    expect(await refusal(["explain", "good", "09:00", "-q", "x"])).toMatchObject({ exit: 3 });
    expect(await refusal(["explain", "good", "09:00", "--owner", "acme"])).toMatchObject({ exit: 3 });
  });
});
