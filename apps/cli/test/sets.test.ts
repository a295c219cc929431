import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { SetConfig } from "@carillon/ops";
import { afterAll, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";
import { carillonOn, Sink } from "./helpers.js";

const bench = harness("sets");
const { cli, json, refusal } = bench;
const folder = mkdtempSync(join(tmpdir(), "carillon-sets-"));
afterAll(() => rmSync(folder, { recursive: true }));

let serial = 0;
function file(content: string, end: string): string {
  serial += 1;
  const path = join(folder, `${serial}.${end}`);
  writeFileSync(path, content);
  return path;
}
const config = (tasks: SetConfig["tasks"], more: Partial<SetConfig> = {}) =>
  file(JSON.stringify({ set: "billing", tasks, ...more }), "json");
const many = (count: number) => Array.from({ length: count }, (_, i) => task(`t${i}`));
const applied = (path: string) => json(["apply", "--config", path, "--yes"]);
const plan = (path: string, ...more: string[]) => cli(["plan", "--config", path, ...more]);

describe("plan and apply", () => {
  it("show what comes, do it, and then find nothing", async () => {
    const path = config([task("a"), task("b")], { calendars: { off: ["2026-12-25"] } });
    const first = await plan(path, "--exit-code");
    expect(first.code).toBe(10);
    expect(first.stdout).toMatch(/^calendar off is created\n\+ create system\/a in queue bar\n/);
    expect(first.stdout).toMatch(/\n {2}every 1h.*; 24 per day\n( {4}\d{4}-.*Z\n){5}\+ create system\/b/);
    expect(first.stdout).toMatch(/\nper day: 0 -> 48 .*\nbilling: 2 create, 0 unchanged\n$/);
    expect(await bench.client.count()).toBe(0);

    const done = await cli(["apply", "--config", path, "--yes"]);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("\n+ create system/b in queue bar\n"),
    });
    expect(done.stdout).toMatch(/\napplied billing: 2 create, 0 unchanged\n$/);
    expect(await plan(path, "--exit-code")).toMatchObject({
      code: 0,
      stdout: "billing: 2 unchanged\n",
      stderr: "",
    });
  });

  it("are shown in the changes, with old and new schedules, and taken back", async () => {
    const at = (hour: number) => ["a", "b"].map((id) => task(id, { schedule: { cron: `0 ${hour} * * *` } }));
    await applied(config([...at(8), task("gone")], { version: "1" }));
    await applied(config(at(9), { version: "2" }));
    const [change] = (await json(["changes", "--limit", "1"])).changes;
    const shown = (await cli(["changes", "--limit", "1"])).stdout;
    expect(shown).toMatch(/ apply 3 tasks of set billing {2}by /);
    expect(shown).toMatch(
      /\n {4}bar system\/a {2}\{"cron":"0 8 \* \* \*"\} -> \{"cron":"0 9 \* \* \*"\} {2}\S+T08:00:00Z -> \S+T09:00:00Z\n/,
    );
    expect(shown).toContain(`carillon undo ${change.id} takes it back`);
    expect((await cli(["changes", "b"])).stdout).toMatch(/ {4}bar system\/b {2}\{"cron":"0 8 /);
    const dry = await cli(["undo", change.id, "--dry-run"]);
    expect(dry.stdout).toMatch(/^~ update system\/a in queue bar\n(?: {2}.*\n)*~ update system\/b /);
    expect(dry.stdout).toMatch(/\nbilling 1: 3 update, 0 unchanged\n$/);
    expect(await cli(["undo", change.id])).toMatchObject({ code: 0, stdout: "restored 3 tasks\n" });
    expect((await plan(config([...at(8), task("gone")], { version: "1" }))).stdout).toBe(
      "billing 1: 3 unchanged\n",
    );
    await bench.client.put(task("a", { schedule: { cron: "5 8 * * *" } }));
    const [undo] = (await json(["changes", "--limit", "2"])).changes.filter(
      (one: { undo?: number }) => one.undo,
    );
    const refused = await cli(["undo", undo.id, "--dry-run"]);
    expect([refused.code, refused.stderr]).toEqual([
      5,
      expect.stringContaining("system/a: it was changed since."),
    ]);
  });

  it("show an update with its words and times side by side, and a removal", async () => {
    await applied(config([task("a"), task("b")]));
    const daily = task("a", { schedule: { cron: "30 2 * * *", timezone: "UTC" }, tags: ["x"] });
    const { stdout } = await plan(config([daily]));
    expect(stdout).toMatch(/^~ update system\/a in queue bar\n(?: {2}.*\n)* {2}tags: \[\] -> \["x"\]\n/);
    expect(stdout).toMatch(/; 24 per day -> at 02:30, every day \(UTC\); 1 per day\n {4}was +is\n/);
    expect(stdout.match(/^ {4}\S+Z {2,}\S+T02:30:00Z$/gm)).toHaveLength(5);
    expect(stdout).toContain("\n- remove system/b in queue bar\n");
    expect(stdout).toMatch(/\nbilling: 1 update, 1 remove, 0 unchanged\n$/);
  });

  it.each(["mjs", "jsonl"])("read carillon.config.%s too", async (end) => {
    const [head, one] = ['"set":"billing"', JSON.stringify(task("a"))];
    const text = end === "mjs" ? `export default {${head},tasks:[${one}]};` : `{${head}}\n\n${one}\n`;
    expect((await json(["plan", "--config", file(text, end)])).counts).toMatchObject({ create: 1 });
  });

  it("of a saved plan do exactly that, or nothing", async () => {
    const saved = join(folder, "saved.json");
    const path = config(many(2));
    await plan(path, "--out", saved);
    await bench.client.put(task("t1", { priority: 3 }));
    expect(await refusal(["apply", saved])).toMatchObject({ exit: 5, code: "STALE_PLAN" });
    expect(await bench.client.count()).toBe(1);
    expect(await refusal(["apply", saved, "--keep"])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });

    expect((await plan(path, "--exit-code")).code).toBe(5);
    await plan(path, "--adopt", "t1", "--out", saved);
    expect(await cli(["apply", saved])).toMatchObject({
      code: 0,
      stdout: "applied billing: 1 create, 1 update, 0 unchanged\n",
    });
    expect(await refusal(["apply", path])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });
  });

  it("ask on a terminal, and want --yes without one", async () => {
    const path = config([task("a")]);
    expect(await refusal(["apply", "--config", path])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });
    const answer = (text: string) => {
      const stdin = Object.assign(Readable.from([Buffer.from(text)], { objectMode: false }), { isTTY: true });
      return carillonOn({ stdin, stdout: new Sink() }, ["apply", "--config", path], bench.env);
    };
    for (const no of ["y\n", ""])
      expect(await answer(no)).toMatchObject({ code: 2, stderr: expect.stringContaining("not confirmed") });
    expect(await bench.client.count()).toBe(0);
    expect(await answer("yes\n")).toMatchObject({ code: 0 });
    expect(await bench.client.count()).toBe(1);
  });

  it("remove most of a set only if that is allowed", async () => {
    await applied(config(many(12)));
    const path = config(many(4));
    const refused = await cli(["apply", "--config", path, "--yes"]);
    expect(refused.code).toBe(5);
    expect(refused.stdout).toContain("refused: 8 of 12 tasks would be removed");
    expect(refused.stderr).toContain("[PLAN_REFUSED]");
    expect((await bench.client.list({ set: "billing" })).tasks).toHaveLength(12);
    const kept = await json(["plan", "--config", path, "--keep"]);
    expect([kept.refused, kept.counts]).toMatchObject([[], { remove: 0 }]);
    const done = await json(["apply", "--config", path, "--yes", "--allow-removals", "8"]);
    expect(done.counts).toMatchObject({ remove: 8, unchanged: 4 });
    expect((await bench.client.list({ set: "billing" })).tasks).toHaveLength(4);
  });

  it.each([
    ["a bad task", "json", JSON.stringify({ set: "b", tasks: [task("a"), { id: "b" }] }), "tasks[1]"],
    [
      "a bad schedule",
      "json",
      JSON.stringify({ set: "b", tasks: [task("a", { schedule: { cron: "x" } })] }),
      "cron",
    ],
    ["an unknown field", "json", '{"set":"b","tasks":[],"task":[]}', "task"],
    ["a bad line", "jsonl", '{"set":"b"}\n{', "line 2"],
    ["a list", "json", "[]", "not an object"],
    ["no default export", "mjs", "export const a = 1;", "not an object"],
    ["code that fails", "mjs", "throw new Error('boom');", "boom"],
    ["a package that is not there", "mjs", 'import "@carillon/none";', "Run `npm install @carillon/none`."],
  ])("name the file and the field for %s", async (_, end, text, what) => {
    const path = file(text, end);
    const { exit, message } = await refusal(["plan", "--config", path]);
    expect([exit, message]).toEqual([2, expect.stringContaining(path)]);
    expect(message).toContain(what);
  });

  it("name the files that are looked for", async () => {
    expect((await refusal(["plan"])).message).toContain("carillon.config.ts, carillon.config.js");
  });
});

describe("secrets of payloads", () => {
  const job = (password: string, more: object = {}) =>
    task("a", { payload: { env: { DB_PASSWORD: password, IBAN: `${password}-iban` }, n: 1 }, ...more });
  const mail = { alerts: [{ on: ["failed"] as const, url: "https://hooks.example.com/hook-one" }] };

  it("are in no plan, which says that they change", async () => {
    const more = { redact: ["env.iban"] };
    await applied(config([job("one-pass")], more));
    const path = config([job("two-pass")], more);
    const saved = join(folder, "hidden.json");
    const shown = await plan(path, "--out", saved);
    expect(shown.stdout).toContain(
      '\n  payload: {"env":{"DB_PASSWORD":"[redacted]","IBAN":"[redacted]"},"n":1} -> ' +
        '{"env":{"DB_PASSWORD":"[redacted] (changed)","IBAN":"[redacted] (changed)"},"n":1}\n',
    );
    const texts = [
      shown,
      await plan(path, "--markdown"),
      await plan(path, "--json"),
      readFileSync(saved, "utf8"),
    ];
    for (const text of texts) {
      expect(JSON.stringify(text)).toContain("[redacted] (changed)");
      expect(JSON.stringify(text)).not.toMatch(/one-pass|two-pass/);
    }
    const names = async (redact: SetConfig["redact"]) =>
      (await json(["plan", "--config", config([job("two-pass")], { redact })])).id;
    expect(await names(false)).toBe(await names(undefined));
    expect((await plan(config([job("two-pass")]))).stdout).toMatch(/"two-pass-iban"/);
    expect((await plan(config([job("two-pass")], { redact: false }))).stdout).toContain('"two-pass"');
    expect((await applied(path)).counts).toMatchObject({ update: 1 });
    expect((await bench.client.get("a")).payload).toMatchObject({ env: { DB_PASSWORD: "two-pass" } });
  });

  it("of a saved plan are read again from its file, and are the same, or nothing is done", async () => {
    const path = config([job("one-pass", mail), task("b")], { redact: ["env.iban"] });
    const saved = join(folder, "saved-hidden.json");
    await plan(path, "--out", saved);
    expect(readFileSync(saved, "utf8")).not.toMatch(/one-pass|hook-one/);
    const write = (...tasks: object[]) =>
      writeFileSync(path, JSON.stringify({ set: "billing", tasks: [...tasks, task("b")] }));
    write(job("new-pass", mail));
    expect(await refusal(["apply", saved])).toMatchObject({ exit: 5, code: "STALE_PLAN" });
    write();
    expect(await refusal(["apply", saved])).toMatchObject({
      ...{ exit: 5, code: "STALE_PLAN", message: expect.stringContaining(`${path} has no task a any more`) },
    });
    expect(await bench.client.count()).toBe(0);
    write(job("one-pass", mail));
    expect(await cli(["apply", saved])).toMatchObject({
      ...{ stderr: "", stdout: "applied billing: 2 create, 0 unchanged\n" },
    });
    expect((await bench.client.get("a")).payload).toMatchObject({ env: { DB_PASSWORD: "one-pass" } });
  });

  it("are left out of a file that is pulled, if asked for", async () => {
    await applied(config([job("one-pass")]));
    const file = join(folder, "secretless.json");
    await cli(["pull", "billing", "--out", file, "--no-secrets", "--redact", "iban"]);
    const text = readFileSync(file, "utf8");
    expect([JSON.parse(text).redact, text.includes("one-pass")]).toEqual([["iban"], false]);
    for (const verb of ["plan", "apply"])
      expect(
        (await refusal([verb, "--config", file, ...(verb === "apply" ? ["--yes"] : [])])).message,
      ).toContain("tasks[0].payload.env.DB_PASSWORD: [redacted] is the placeholder");
  });
});

describe("environments", () => {
  it("are named by --env, and change defaults and single tasks", async () => {
    const { queue: _, ...one } = task("a");
    const environments = { production: {}, staging: { defaults: { state: "paused" }, tasks: { b: false } } };
    const more = { defaults: { queue: "bar" }, environments };
    const path = config([one, { ...one, id: "b" }] as never, more as object);
    expect((await json(["plan", "--config", path, "--env", "production"])).counts).toMatchObject({
      create: 2,
    });
    await json(["apply", "--config", path, "--env", "staging", "--yes"]);
    expect((await bench.client.list()).tasks).toMatchObject([{ id: "a", queue: "bar", state: "paused" }]);
    const { exit, message } = await refusal(["plan", "--config", path]);
    expect([exit, message]).toEqual([
      2,
      expect.stringContaining("Give one of production, staging: --env NAME."),
    ]);
    expect(message).toContain(path);
  });
});

describe("plan --markdown", () => {
  it("is a comment on a pull request, which no text in it can change", async () => {
    await applied(config(many(8)));
    const changed = [task("t0", { description: "a ```` b" }), task("new", { type: "<b>*x*" })];
    const bad = await cli(["plan", "--config", config(changed), "--markdown"]);
    expect(bad.code).toBe(2);
    const { stdout } = await plan(config([...changed.slice(0, 1), task("new")]), "--markdown");
    expect(stdout).toMatch(/^### Schedules of billing: 1 create, 1 update, 7 remove, 0 unchanged\n/);
    expect(stdout).toMatch(
      /\n\*\*Refused:\*\* 7 of 8 tasks would be removed.* \\\[TOO\\_MANY\\_REMOVALS\\\]\n/,
    );
    expect(stdout).toContain(
      '<details><summary><b>update</b> <code>system/t0</code> in queue <code>bar</code></summary>\n\n`````\ndescription: - -> "a ```` b"\n`````\n</details>',
    );
    expect(stdout).toMatch(/\n<b>remove<\/b> <code>system\/t1<\/code> in queue <code>bar<\/code>\n/);
  });
});

describe("pull", () => {
  it.each(["json", "jsonl", "mjs"])("of a set writes a .%s file that plans as unchanged", async (end) => {
    const tasks = [
      task("a", {
        tags: ["x"],
        retry: { attempts: 3, delay: "1m" },
        payload: { "a-b": 'text "k": 1', k: [1] },
      }),
      task("b", {
        schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin", jitter: "30s" },
        owner: "acme",
      }),
      task("moved", {
        alerts: [{ on: ["failed"], url: "https://hooks.example.com/secret" }],
      }),
    ];
    await applied(config(tasks, { version: "7", protect: ["a"] }));
    await bench.client.pause("a");
    await cli(["move", "moved", "slow"]);
    const file = join(folder, `pulled-${end}.${end}`);
    expect((await cli(["pull", "billing", "--out", file])).stdout).toBe(`wrote 3 tasks to ${file}.\n`);
    expect(readFileSync(file, "utf8")).not.toContain("secret");
    expect(await plan(file, "--exit-code")).toMatchObject({ code: 0, stdout: "billing 7: 3 unchanged\n" });
    expect(await refusal(["pull", "billing", "--out", file])).toMatchObject({ code: "INVALID_OPTION" });
    expect((await cli(["pull", "billing", "--out", file, "--force"])).code).toBe(0);
  });

  it("of tasks of no set writes them for a new one, which adopts them", async () => {
    await applied(config([task("theirs")]));
    await bench.client.putMany([task("a"), task("b", { queue: "other" }), task("c", { tags: ["x"] })]);
    const file = join(folder, "loose.ts");
    await cli(["pull", "mail", "--queue", "bar", "--out", file]);
    const text = readFileSync(file, "utf8");
    expect(text).toMatch(
      /^import { defineConfig } from "@carillon\/ops";\n\nexport default defineConfig\({\n {2}set: "mail",/,
    );
    expect([...text.matchAll(/\bid: "(.*)"/g)].map(([, id]) => id)).toEqual(["a", "c"]);
    const again = join(folder, "loose.json");
    await cli(["pull", "mail", "--tag", "x", "--out", again]);
    expect((await plan(again, "--exit-code")).code).toBe(5);
    await cli(["apply", "--config", again, "--adopt", "*", "--yes"]);
    expect(await plan(again, "--exit-code")).toMatchObject({ code: 0, stdout: "mail: 1 unchanged\n" });
  });

  it("says what is wrong: no such set, no tasks, another ending", async () => {
    const pull = (...args: string[]) => refusal(["pull", "billing", ...args]);
    expect(await pull("--out", join(folder, "x.json"))).toMatchObject({ exit: 3, code: "SET_NOT_FOUND" });
    expect(await pull("--all", "--out", join(folder, "x.json"))).toMatchObject({ code: "INVALID_OPTION" });
    expect((await pull("--out", "x.yaml")).message).toContain("x.yaml has another ending");
  });
});

describe("import", () => {
  it("gives what all tasks have as defaults; applied, they are paused until they are resumed", async () => {
    const crontab = "0 4 * * * /srv/a.sh\n30 5 * * 1 flock -n /l /srv/b.sh\n";
    const out = join(folder, "imported.json");
    const more = ["--set", "cron", "--queue", "shell", "-z", "Europe/Berlin", "--out", out];
    await cli(["import", "crontab", ...more], crontab);
    expect(JSON.parse(readFileSync(out, "utf8"))).toEqual({
      set: "cron",
      defaults: { type: "shell", queue: "shell", enabled: false, timezone: "Europe/Berlin" },
      tasks: [
        { id: "a", schedule: { cron: "0 4 * * *" }, payload: { command: "/srv/a.sh" }, overlap: "allow" },
        { id: "b", schedule: { cron: "30 5 * * 1" }, payload: { command: "/srv/b.sh" }, overlap: "skip" },
      ],
    });
    await applied(out);
    expect(await bench.client.get("b")).toMatchObject({
      ...{ state: "paused", schedule: { timezone: "Europe/Berlin" }, queue: "shell" },
    });
    await cli(["resume", "--all", "--set", "cron"]);
    expect((await bench.client.get("b")).state).toBe("scheduled");
    expect((await plan(out, "--exit-code")).code).toBe(0);
  });

  it("names the secrets of the file, and shows none; --no-secrets leaves them out, until they are given", async () => {
    const crontab = "API_KEY=abc-1\n0 4 * * * PGPASSWORD=abc-2 pg_dump\n@reboot DB_TOKEN=abc-3 run\n";
    const out = join(folder, "secrets.json");
    const more = ["--set", "cron", "--out", out, "--force"];
    const [report, whole] = [await cli(["import", "crontab", ...more], crontab), readFileSync(out, "utf8")];
    expect(whole).toMatch(/"PGPASSWORD=abc-2 pg_dump",\s+"env": {\s+"API_KEY": "abc-1"/);
    expect(report.stdout).toMatch(
      /\n {2}SECRET payload\.command, payload\.env\.API_KEY: secrets, by their names, in the file/,
    );
    expect(report.stdout).toContain("DB_TOKEN=[redacted] run");
    const answer = await json(["import", "crontab", ...more, "--no-secrets"], crontab);
    const file = JSON.parse(readFileSync(out, "utf8"));
    for (const text of [report.stdout, JSON.stringify(answer), JSON.stringify(file)])
      expect(text).not.toMatch(/abc-\d/);
    expect((await refusal(["apply", "--config", out, "--yes"])).message).toContain(
      "tasks[0].payload.command: [redacted] is the placeholder",
    );
    file.tasks[0].payload = JSON.parse(whole).tasks[0].payload;
    writeFileSync(out, JSON.stringify(file));
    expect((await applied(out)).counts).toMatchObject({ create: 1 });
  });

  it("leaves in each task what only it has, and a zone that others do not name", async () => {
    const rows = [
      { name: "a", cron: "0 4 * * *", timezone: "UTC", options: { retryLimit: 0 } },
      { name: "b", cron: "0 4 * * *", timezone: "Asia/Tokyo" },
    ];
    const out = join(folder, "pg-boss.json");
    await cli(["import", "pg-boss", "--out", out], JSON.stringify(rows));
    const { defaults, tasks } = JSON.parse(readFileSync(out, "utf8"));
    expect(defaults).toEqual({ overlap: "allow", catchUp: "skip", timeLimit: "900s", enabled: false });
    expect(tasks).toMatchObject([
      { id: "a", queue: "a", schedule: { timezone: "UTC" } },
      { id: "b", retry: { attempts: 3 }, schedule: { timezone: "Asia/Tokyo" } },
    ]);
    expect((await plan(out)).stdout).toContain("pg-boss: 2 create");
  });
});

describe("sets", () => {
  it("are listed with their sizes, versions and authors", async () => {
    expect((await cli(["sets"])).stdout).toBe("No sets.\n");
    await json(["apply", "--config", config(many(2), { version: "1.2" }), "--yes", "--by", "ann"]);
    expect((await cli(["sets"])).stdout).toMatch(/^SET .*\nbilling +2 +1\.2 +\S.* ann *\n$/);
  });
});

describe("drift", () => {
  it("lists tasks that others changed, and counts those that they deleted", async () => {
    const path = config(many(3));
    await applied(path);
    const drift = (...more: string[]) => cli(["drift", "--config", path, "--exit-code", ...more]);
    expect(await drift()).toMatchObject({ code: 0, stdout: "No drift in billing.\n" });
    await bench.client.put(task("t1", { priority: 3 }), { by: "ann" });
    await bench.client.delete("t2");
    const { code, stdout } = await drift();
    expect(code).toBe(10);
    expect(stdout).toMatch(/^TASK .*\nsystem\/t1 +bar .* ann\n1 of the 3 tasks of billing were deleted\.\n$/);
    expect((await plan(path)).stdout).toMatch(/~ update system\/t1 .*\n {2}was changed by ann at /);
    expect(await refusal(["drift", "other"])).toMatchObject({ exit: 3, code: "SET_NOT_FOUND" });
  });
});
