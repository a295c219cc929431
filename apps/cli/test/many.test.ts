import type { AnswerTo } from "@carillon/ops";
import { operatorOf } from "@carillon/ops";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { beforeEach, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";

const bench = harness("many");
const { cli, json, refusal } = bench;

beforeEach(async () => {
  await bench.client.putMany([
    task("a", { tags: ["ops"] }),
    task("b", { tags: ["ops"], owner: "acme" }),
    task("c", { queue: "foo", owner: "acme" }),
    task("d", { queue: "foo", tags: ["ops"], schedule: { at: 0 } }),
  ]);
});

/** Ids of the tasks in a state. */
async function named(state?: "scheduled" | "paused" | "finished"): Promise<string> {
  const { tasks } = await bench.client.list({ state });
  return tasks
    .map(({ id }) => id)
    .sort()
    .join("");
}

describe("all of a tag, an owner or a queue", () => {
  it("are paused and resumed, with reason and author", async () => {
    const paused = await json(["pause", "--tag", "ops", "--all", "--note", "down", "--by", "ann"]);
    // d is finished.
    expect(paused).toMatchObject({ count: 2, sample: [{ id: "b" }, { id: "a" }] });
    expect(await named("paused")).toBe("ab");
    expect((await bench.client.get("a")).paused).toMatchObject({ note: "down", by: "ann" });
    expect((await cli(["pause", "--tag", "ops", "--all"])).stdout).toBe("paused 0 tasks\n");
    expect((await cli(["resume", "--owner", "acme", "--all", "--by", "eve"])).stdout).toBe(
      "resumed 1 task\n",
    );
    expect(await named("paused")).toBe("a");
    expect(await json(["resume", "-q", "bar", "--all", "--missed", "catch-up"])).toMatchObject({ count: 1 });
    expect(await named("paused")).toBe("");
  });

  it("are listed by a dry run, with the notes of their pauses", async () => {
    await cli(["pause", "a", "--note", "retired, do NOT resume", "--by", "ann"]);
    const { stdout } = await cli(["resume", "--tag", "ops", "--dry-run"]);
    expect(stdout).toMatch(/^resume means 1 task\n/);
    expect(stdout).toMatch(/system\/a +bar +.* ann +retired, do NOT resume/);
    expect(await json(["rm", "--tag", "ops", "--all", "--dry-run"])).toMatchObject({
      count: 3,
      sample: [{ id: "b" }, { id: "a", paused: { by: "ann" } }, { id: "d" }],
    });
    expect((await named()).length).toBe(4);
    expect(await named("paused")).toBe("a");
  });

  it("are resumed only if they were paused with this note, or by this name", async () => {
    await cli(["pause", "a", "--note", "retired, do NOT resume", "--by", "ann"]);
    await cli(["pause", "--tag", "ops", "--all", "--note", "INC-43", "--by", "eve"]);
    expect(await named("paused")).toBe("ab");
    expect(await json(["resume", "--tag", "ops", "--all", "--note", "INC-44"])).toMatchObject({ count: 0 });
    expect(await json(["resume", "--tag", "ops", "--all", "--note", "INC-43"])).toMatchObject({ count: 1 });
    expect(await named("paused")).toBe("a");
    expect(await json(["resume", "-q", "bar", "--all", "--paused-by", "eve"])).toMatchObject({ count: 0 });
    expect(await json(["resume", "--all", "--paused-by", "ann"])).toMatchObject({ count: 1 });
    expect(await named("paused")).toBe("");
  });

  it("are deleted", async () => {
    expect((await cli(["rm", "-q", "foo", "--all"])).stdout).toBe("deleted 2 tasks\n");
    expect(await named()).toBe("ab");
    expect(await json(["rm", "--tag", "ops", "--owner", "acme", "--all"])).toMatchObject({ count: 1 });
    expect(await named()).toBe("a");
  });

  it("are not touched without --all", async () => {
    for (const [args, said] of [
      [["rm", "--tag", "ops"], "rm means all that match (tag ops)."],
      [["pause", "--tag", "ops"], "pause means all that match (tag ops)."],
      [["resume", "-q", "foo", "--owner", "acme"], "resume means all that match (queue foo, owner acme)."],
      [["rm", "--owner", "acme", "-q", "foo"], "rm means all that match (queue foo, owner acme)."],
    ] as const) {
      const { exit, code, message } = await refusal([...args]);
      expect([exit, code, message]).toEqual([
        2,
        "INVALID_OPTION",
        `all: missing. ${said} Add --dry-run to see how many and which, --all to go on.`,
      ]);
    }
    expect((await named()).length).toBe(4);
    expect(await named("paused")).toBe("");
  });
});

describe("several named tasks", () => {
  it("are handled one by one; a dry run shows one", async () => {
    expect((await cli(["rm", "a", "--dry-run"])).stdout).toMatch(/^rm means 1 task\nTASK/);
    const { code, stdout, stderr } = await cli(["pause", "a", "acme/b", "none", "--note", "x"]);
    expect([code, stdout]).toEqual([5, "paused 2 tasks\n"]);
    expect(stderr).toMatch(/^1 task refused:\n {2}none: there is no task .* \[TASK_NOT_FOUND\]\n$/);
    expect(await named("paused")).toBe("ab");
  });

  it("are triggered, tagged, and their runs cancelled", async () => {
    expect(await json(["trigger", "--tag", "ops", "--state", "scheduled", "--all"])).toMatchObject({
      count: 2,
    });
    const again = await cli(["trigger", "a", "b", "--owner", "system"]);
    expect([again.code, again.stdout]).toEqual([5, "triggered 0 tasks\n"]);
    expect(again.stderr).toMatch(/2 tasks refused:\n(.*\[(SKIPPED_OVERLAP|TASK_NOT_FOUND)\]\n){2}/);
    expect(await json(["cancel", "-q", "bar", "--dry-run"])).toMatchObject({ count: 2, tasks: 2 });
    expect(await refusal(["cancel", "-q", "bar"])).toMatchObject({
      exit: 2,
      message: expect.stringMatching(/cancel means all that match \(queue bar\)\. Add --dry-run/),
    });
    expect((await cli(["cancel", "-q", "bar", "--dry-run"])).stdout).toMatch(/^cancel means 2 runs\nRUN/);
    expect((await cli(["cancel", "-q", "bar", "--all"])).stdout).toBe("asked for the end of 2 runs\n");
    const [run] = await bench.client.runs.list("a", { limit: 1 });
    const some = await cli(["cancel", run!.id, "none@bar", "--dry-run"]);
    expect([some.code, some.stdout]).toEqual([5, expect.stringMatching(/^cancel means 0 runs\n/)]);
    const tag = ["tag", "--tag", "ops", "--add", "x", "--add", "y", "--remove", "ops"];
    expect((await cli([...tag, "--dry-run"])).stdout).toMatch(/^tag means 3 tasks\n/);
    expect((await cli([...tag, "--all"])).stdout).toBe("tagged 3 tasks\n");
    expect((await cli(["tag", "c", "--owner", "acme", "--add", "x"])).stdout).toBe("tagged 1 task\n");
    expect((await bench.client.list({ tag: "x" })).tasks).toHaveLength(4);
  });
});

describe("edit of many", () => {
  it("shows each task's fields first, changes all or none, and is undone", async () => {
    const edit = ["edit", "--tag", "ops", "--set", "priority=7", "--add", "tags=x"];
    expect(await refusal(edit)).toMatchObject({ exit: 2, message: expect.stringMatching(/^all: missing\./) });
    const dry = await cli([...edit, "--dry-run"]);
    expect(dry.stdout).toMatch(/^edit means 3 tasks\n\S+\/\S+\n(.*\n)* {2}\+ priority: 7\n/);
    expect((await bench.client.list({ tag: "x" })).tasks).toEqual([]);
    expect((await cli([...edit, "--all"])).stdout).toBe("changed 3 tasks\n");
    expect((await bench.client.list({ tag: "x" })).tasks.map(({ priority }) => priority)).toEqual([7, 7, 7]);
    const [change] = (await operatorOf(bench.client).changes.list()).changes;
    expect((await cli(["undo", change!.id])).stdout).toBe("restored 3 tasks\n");
    expect((await bench.client.list({ tag: "x" })).tasks).toEqual([]);
    const refused = await refusal(["edit", "a", "acme/b", "--set", "schedule.cron=nonsense"]);
    expect(refused).toMatchObject({ code: "INVALID_SCHEDULE", message: expect.stringContaining("schedule") });
  });
});

describe("move", () => {
  it("moves a task to another queue, once", async () => {
    expect((await cli(["move", "a", "foo", "--by", "ann"])).stdout).toBe("moved a to foo\n");
    expect((await bench.client.get("a")).queue).toBe("foo");
    expect((await cli(["move", "a", "foo"])).stdout).toBe("is there already: a in foo\n");
    expect(await json(["move", "a", "bar", "-q", "foo"])).toMatchObject({
      task: { queue: "bar" },
      changed: true,
    });
    await bench.client.trigger("a");
    expect((await cli(["move", "a", "foo", "--wait", "1ms"])).code).toBe(5);
    expect((await cli(["move", "none", "foo"])).code).toBe(3);
    expect((await cli(["move", "a", "a b"])).code).toBe(2);
    expect(await bench.client.get("a")).toMatchObject({ queue: "bar", state: "scheduled" });
  });
});

describe("resume --plan", () => {
  it("counts owed occurrences and the runs of each choice; `all` starts backfills", async () => {
    // Its last time is half an hour ago, so none comes while the test runs.
    const first = Date.now() - 4.5 * 3_600_000;
    const schedule = { every: "1h", origin: new Date(first).toISOString() };
    await bench.client.put(task("x", { tags: ["p"], schedule, catchUp: "all" }));
    await bench.client.pause("x", { note: "INC-43" });
    const plan = ["resume", "--tag", "p", "--note", "INC-43", "--plan"];
    expect((await cli(plan)).stdout).toBe("1 paused task; 0 of them owe 0 occurrences\n");
    const store = storeOf(bench.client);
    const { link, keys } = internalsOf(store);
    const key = keys.queue("bar").task("system/x");
    await link.ask((client) => client.hset(key, "nominal", first));
    const { stdout } = await cli([...plan, "--per-minute", "10"]);
    expect(stdout).toMatch(/^1 paused task; 1 of them owe 5 occurrences\n--missed +STARTS +HOW\nskip +0 /);
    expect(stdout).toMatch(
      /\nlatest +1 .*\ncatch-up +5 +at once; tasks by policy: all 1\nall +5 +30 s at 10 a minute\n/,
    );
    expect(stdout).toMatch(/\nsystem\/x +bar +5 +all /);
    expect(await json(plan)).toMatchObject({ tasks: 1, starts: { all: { count: 5, exact: true } } });
    expect(await json(["resume", "--plan"])).toMatchObject({ tasks: 1, owed: { count: 5 } });
    expect((await refusal(["resume", "x", "--missed", "all"])).message).toMatch(/^perMinute: missing/);
    const done = await cli(["resume", "x", "--missed", "all", "--per-minute", "10"]);
    expect(done.stdout).toMatch(/^resumed 1 task\nwhat they owe runs as backfills: batch b-\w{12}\n$/);
    expect(await json(["backfills"])).toMatchObject({
      backfills: [{ task: { id: "x" }, total: 5, every: 6_000 }],
    });
    const again = await cli(["resume", "--tag", "p", "--all", "--missed", "skip"]);
    expect(again.stdout).toMatch(
      /^resumed 0 tasks\nanother resume let 1 task go on; what they owed, 5 occurrences, runs as backfills: batch b-\w{12}\n$/,
    );
  });

  it.each<[object, string]>([
    [{ tag: "p" }, "--all --tag p"],
    [{ queue: "bar", owner: "system" }, "--all --owner system --queue bar"],
    [{ tasks: ["x"] }, "system/x --queue bar"],
    [{ all: true }, "--all --owner OWNER"],
  ])("names the backfill of a freeze of %j, until it was made", async (scope, which) => {
    await bench.client.put(task("x", { tags: ["p"], schedule: { every: "1h" } }));
    const ops = operatorOf(bench.client);
    const { id } = await ops.freezes.put(scope);
    const hour = 3_600_000;
    const now = await bench.client.serverTime();
    const to = Math.floor(now / hour) * hour - hour;
    const { link, keys } = internalsOf(storeOf(bench.client));
    const entry = `frozen ${to - hour} ${to} 2 ${now} node - frozen`;
    await link.ask((client) => client.lpush(keys.queue("bar").ledger("system/x"), entry));
    await ops.freezes.delete({ id });
    const { stdout } = await cli(["resume", "--plan"]);
    expect(stdout).toContain("freezes skipped 2 occurrences of 1 task in the last day; to run them:\n");
    const [, command] = /\n {2}carillon (backfill .*)\n/.exec(stdout) ?? [];
    expect(command).toMatch(
      new RegExp(`^backfill ${which} --only frozen --from \\S+ --to \\S+( --per-minute 60)?$`),
    );
    const args = (command as string).replace("OWNER", "system").split(" ");
    expect((await cli(args)).stdout).toContain("2 occurrences");
    expect((await cli(args)).stdout).toContain(
      "\n2 left out: succeeded since, under way, or about to be run again\n",
    );
    expect((await cli(["resume", "--plan"])).stdout).not.toContain("freezes skipped");
  });
});

describe("errors", () => {
  it.each([
    ["nothing says which", ["rm"]],
    ["nothing says which of all", ["rm", "--all"]],
    ["a task and --all", ["rm", "a", "--all"]],
    ["a task and a tag", ["pause", "a", "--tag", "ops"]],
    ["tasks and a state", ["rm", "a", "b", "--state", "paused"]],
    ["no tag to add or remove", ["tag", "a"]],
    ["nothing says which runs", ["cancel", "--all"]],
    ["a task and the note of a pause", ["resume", "a", "--note", "down"]],
  ])("%s is refused with 2, and nothing is done", async (_, args) => {
    expect(await cli(args)).toMatchObject({ code: 2, stdout: "" });
    expect((await named()).length).toBe(4);
    expect(await named("paused")).toBe("");
  });
});

describe("freeze", () => {
  it("holds a scope until it is lifted, and leaves pauses alone", async () => {
    await cli(["pause", "b", "--owner", "acme", "--note", "retired"]);
    const why = ["--note", "INC-43", "--by", "ann"];
    const { id } = (await json(["--owner", "acme", "freeze", "--until", "2099-01-01T00:00:00Z", ...why])) as {
      id: string;
    };
    expect(await json(["freezes"])).toMatchObject({
      freezes: [{ id, owner: "acme", active: true, note: "INC-43", by: "ann" }],
    });
    expect((await cli(["freezes"])).stdout).toMatch(
      new RegExp(`${id} +owner acme +yes +until .* ann +INC-43`),
    );
    const listed = await cli(["list", "--owner", "acme"]);
    expect(listed.stdout).toMatch(/acme\/b +\S+ +paused /);
    expect(listed.stdout).toMatch(/acme\/c +\S+ +held until 2099-\S+ by ann /);
    expect(listed.stderr).toMatch(
      new RegExp(`^carillon: held until 2099\\S+ by ann: INC-43 \\(carillon unfreeze ${id}\\)\n$`),
    );
    expect((await cli(["show", "acme/c", "-q", "foo"])).stdout).toMatch(/\nfrozen +owner acme, until 2099/);
    expect((await cli(["trigger", "c", "--owner", "acme"])).code).toBe(5);
    expect((await cli(["trigger", "c", "--owner", "acme", "--force"])).code).toBe(0);
    expect((await cli(["unfreeze", id])).stdout).toBe(`lifted ${id}\n`);
    expect((await cli(["unfreeze", id])).code).toBe(3);
    expect((await cli(["freezes"])).stdout).toBe("No freezes.\n");
    expect(await named("paused")).toBe("b");
  });

  it("recurs in windows, and needs a scope", async () => {
    const windows = ["--all", "--cron", "0 3 * * Sun", "-z", "Europe/Berlin", "--for", "2h"];
    expect(await json(["freeze", ...windows])).toMatchObject({ all: true, length: 7_200_000 });
    expect((await cli(["freeze"])).code).toBe(2);
    const paused = await cli(["pause", "a", "--until", "2h", "--note", "INC-9"]);
    expect(paused.stdout).toMatch(/^paused system\/a until .*: freeze \w+\nholds 1 task, .*\n$/);
    expect((await cli(["freeze", "a", "--from", "1h", "--dry-run"])).stdout).toMatch(/^would hold 1 task, /);
    expect((await cli(["resume", "a"])).stdout).toBe("resumed a\n");
    expect((await cli(["pause", "--owner", "acme", "--all", "--until", "2h"])).code).toBe(2);
    const typo = await cli(["freeze", "--owner", "amce", "--until", "1h", "--dry-run"]);
    expect(typo).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^would hold 0 tasks, 0 starts until /),
    });
    expect(typo.stderr).toMatch(/No task has the owner amce\. Did you mean acme\? \[MATCHES_NOTHING\]/);
    expect((await operatorOf(bench.client).freezes.list()).freezes.length).toBe(1);
    const [freeze] = (await operatorOf(bench.client).freezes.list()).freezes;
    await operatorOf(bench.client).freezes.delete({ id: freeze?.id ?? "" });
  });
});

describe("tokens", () => {
  it("are created with only the secret on stdout, listed, and revoked", async () => {
    const options = ["--role", "operator", "--owner", "acme,beta", "--expires", "90d"];
    const before = Date.now();
    const { stdout, stderr } = await cli(["tokens", "create", "ci", ...options]);
    expect(stdout).toMatch(/^carillon_ci_[\w-]{43}\n$/);
    expect(stderr).toMatch(/not shown again/);
    const { tokens } = (await json(["tokens"])) as AnswerTo<"tokens.list">;
    expect(tokens).toMatchObject([{ name: "ci", role: "operator", owners: ["acme", "beta"] }]);
    expect(tokens[0]?.expires).toBeGreaterThanOrEqual(before + 90 * 86_400_000);
    expect(tokens[0]?.createdBy).toMatch(/.@./);
    expect((await cli(["tokens"])).stdout).toMatch(/^ci +operator +acme, beta /m);
    expect(
      await json(["tokens", "create", "all", "--role", "viewer", "--expires", "2099-01-31"]),
    ).toMatchObject({
      token: { name: "all", createdBy: expect.stringMatching(/@/) },
      secret: expect.stringMatching(/^carillon_all_/),
    });
    const codes = [];
    for (const wrong of [
      ["create", "ci", "--role", "viewer"],
      ["create", "x", "--role", "root"],
      ["create", "x"],
      ["create", "x", "--role", "viewer", "--expires", "soon"],
      ["revoke", "nobody"],
    ])
      codes.push((await cli(["tokens", ...wrong])).code);
    expect(codes).toEqual([5, 2, 2, 2, 3]);
    expect((await cli(["tokens", "revoke", "ci"])).stdout).toBe("revoked ci\n");
    expect(await json(["tokens", "revoke", "all"])).toEqual({ name: "all", revoked: true });
    expect((await cli(["tokens"])).stdout).toBe("No tokens.\n");
    expect((await cli(["changes", "--limit", "4"])).stdout).toMatch(/token\.revoke token ci +by .+@/);
  });
});
