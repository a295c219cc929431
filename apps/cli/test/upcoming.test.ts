import { shardOf } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { beforeEach, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";

const bench = harness("upcoming");
const { cli, json, refusal } = bench;

const SOON = Math.floor(Date.now() / 60_000) * 60_000 + 3_600_000;
const at = (minutes: number) => SOON + minutes * 60_000;

beforeEach(async () => {
  await bench.client.putMany([
    task("later", { schedule: { at: at(30) } }),
    task("first", { schedule: { at: at(0) }, owner: "acme" }),
    task("other", { schedule: { at: at(10) }, queue: "foo" }),
    task("held", { schedule: { at: at(5) }, enabled: false }),
  ]);
});

const ids = ({ upcoming }: { upcoming: { task: { id: string } }[] }) => upcoming.map((one) => one.task.id);

describe("upcoming", () => {
  it("lists the next due times, earliest first", async () => {
    const found = await json(["upcoming"]);
    expect(ids(found)).toEqual(["first", "other", "later"]);
    expect(found.upcoming[0]).toEqual({
      task: { queue: "bar", owner: "acme", id: "first" },
      nominal: at(0),
      due: at(0),
    });
    expect(ids(await json(["upcoming", "-n", "1"]))).toEqual(["first"]);
    expect(ids(await json(["upcoming", "-q", "foo"]))).toEqual(["other"]);
    expect(ids(await json(["upcoming", "--owner", "acme"]))).toEqual(["first"]);
    const { stdout } = await cli(["upcoming", "-n", "2"]);
    expect(stdout).toMatch(
      /^DUE +QUEUE +TASK\n\S+ \(in .*\) +bar +acme\/first\n\S+ \(in .*\) +foo +system\/other\n$/,
    );
  });

  it("shows nominal times that differ", async () => {
    await bench.client.put(task("spread", { queue: "foo", schedule: { every: "5m", jitter: "2m" } }));
    expect((await cli(["upcoming", "-q", "foo"])).stdout).toMatch(/^DUE +NOMINAL +QUEUE +TASK\n/);
  });

  it("says which freeze skips or holds an occurrence, and why", async () => {
    await json(["freeze", "first", "--owner", "acme", "--note", "INC-43", "--by", "ann"]);
    const { stdout } = await cli(["upcoming", "-n", "1"]);
    expect(stdout).toMatch(/ FROZEN\n.* acme\/first +until lifted by ann: INC-43\n$/);
  });

  it("names the owner with most of what is overdue, and the limit that a task waits for", async () => {
    const { link, keys } = internalsOf(storeOf(bench.client));
    const { dues, task: keyOf, waiting } = keys.queue("bar");
    const overdue = Date.now() - 3_600_000;
    await operatorOf(bench.client).queues.limit({ queue: "bar", owner: "acme", runs: 1 });
    for (const local of ["system/later", "acme/first"]) {
      await link.client.hset(keyOf(local), "due", overdue, "nominal", overdue);
      await link.client.zadd(dues[shardOf(local)] ?? "", overdue, local);
    }
    await link.client.zadd(waiting("acme"), overdue, `${shardOf("acme/first")} acme/first`);
    await bench.client.put(task("more", { schedule: { at: at(50) }, owner: "acme" }));
    await link.client.zadd(dues[shardOf("acme/more")] ?? "", overdue, "acme/more");
    const { stdout } = await cli(["upcoming", "-q", "bar"]);
    expect(stdout).toMatch(/ WAITS\n/);
    expect(stdout).toMatch(/ acme\/first +held by the limit of 1 run of owner acme\n/);
    expect(stdout).toMatch(/\nOverdue in the queue bar: 2 of 3 are of owner acme\.\n$/);
    expect((await json(["upcoming", "-q", "bar"])).overdue).toEqual([
      { queue: "bar", owner: "acme", tasks: 2, read: 3, due: 3 },
    ]);
  });

  it("reports an empty list", async () => {
    expect((await cli(["upcoming", "--namespace", "empty"])).stdout).toBe("Nothing is due.\n");
    expect(await json(["upcoming", "-q", "none"])).toEqual({ upcoming: [] });
  });
});

describe("upcoming --within", () => {
  it("lists each occurrence in a period", async () => {
    expect(ids(await json(["upcoming", "--within", "90m"]))).toEqual(["first", "other", "later"]);
    await bench.client.put(task("often", { queue: "often", schedule: { every: "10m" } }));
    const times = (await json(["upcoming", "--within", "1h", "-q", "often"])).upcoming.map(
      ({ nominal }: { nominal: number }) => nominal,
    );
    expect(times).toHaveLength(6);
    expect(times[5] - times[0]).toBe(50 * 60_000);
    const cut = await cli(["upcoming", "--within", "1h", "-q", "often", "-n", "2"]);
    expect(cut.stdout.split("\n")).toHaveLength(4);
    expect(cut.stderr).toContain("there may be more");
  });

  it("reports an empty list", async () => {
    expect((await cli(["upcoming", "--within", "1m"])).stdout).toBe("Nothing is due within 1m.\n");
  });

  it("names the invalid argument", async () => {
    for (const [args, most] of [
      [[], 1_000],
      [["--within", "1h"], 100_000],
    ] as const) {
      expect(await refusal(["upcoming", ...args, "--limit", "0"])).toMatchObject({
        exit: 2,
        field: "limit",
        message: `limit: got 0. Give a whole number from 1 to ${most}.`,
      });
    }
    expect(await refusal(["upcoming", "--within", "5"])).toMatchObject({
      exit: 2,
      code: "INVALID_OPTION",
      field: "within",
    });
  });
});

describe("load", () => {
  it("draws planned occurrences, and names the busiest times", async () => {
    await bench.client.putMany(
      Array.from({ length: 12 }, (_, i) => task(`m${i}`, { schedule: { at: at(120) }, queue: "crowd" })),
    );
    const range = ["--from", new Date(at(0)).toISOString(), "--to", new Date(at(180)).toISOString()];
    const found = await json(["load", ...range, "--step", "30m"]);
    expect(found).toMatchObject({ total: 15, tasks: 15, step: 1_800_000 });
    const { stdout } = await cli(["load", ...range]);
    expect(stdout).toMatch(/^\d\d-\d\d \d\d:00 +\d+ +█*\n/);
    expect(stdout).toMatch(/: 12 tasks meet\n {2}12: once, at .*: system\/m0 and 11 more\n/);
    expect((await cli(["load", "--tag", "none"])).stdout).toBe("Nothing is planned.\n");
    expect(await refusal(["load", "--step", "1s"])).toMatchObject({ exit: 2 });
  });
});
