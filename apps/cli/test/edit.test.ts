import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "@carillon/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";
import { carillon } from "./helpers.js";

const stage = harness("edit");

const NIGHTLY = task("nightly", {
  schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" },
  payload: { format: "pdf", zip: "01234" },
  retry: { attempts: 3, delay: "1m" },
});
const set = (...assignments: string[]) => assignments.flatMap((text) => ["--set", text]);
const stored = () => stage.client.get("nightly");

beforeEach(async () => {
  await stage.client.put(NIGHTLY);
});

it("changes, revisions and restore show and undo changes of a task", async () => {
  await stage.json(["edit", "nightly", ...set("priority=5"), "--by", "ann"]);
  const changes = await carillon(["changes", "nightly"], stage);
  expect(changes.stdout).toMatch(
    /put system\/nightly in \S+ {2}by ann \(cli .*\)\n {2}- priority: 0\n {2}\+ priority: 5\n/,
  );
  expect(await stage.json(["revisions", "nightly"])).toMatchObject({
    revisions: [{ number: 1, definition: { id: "nightly" } }],
  });
  expect((await carillon(["revisions", "nightly"], stage)).stdout).toMatch(/^NUMBER .*SCHEDULE\n +1 /);
  expect(await stage.json(["restore", "nightly", "1"])).toMatchObject({ outcome: "updated" });
  expect((await stored()).priority).toBe(0);
  const missing = await carillon(["restore", "nightly", "7"], stage);
  expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining("REVISION_NOT_FOUND")]);
});

it("a minute's herd is spread, seen in numbers first, and undone", async () => {
  const herd = ["spread", "2100-01-01T03:00:00Z", "5m", "--owner", "acme"];
  for (const id of ["a", "b"])
    await stage.client.put({ ...NIGHTLY, id, owner: "acme", schedule: { cron: "0 3 * * *" } });
  const { stdout } = await carillon([...herd, "--dry-run"], stage);
  expect(stdout).toMatch(/^spread means 2 tasks\nmost starts in \d+ s: \d instead of 2\nTASK .*\nacme\/a /);
  expect((await carillon([...herd, "--by", "ann"], stage)).stdout).toMatch(/^spread 2 tasks\nmost starts/);
  const jitters = async () =>
    (await stage.client.list({ owner: "acme" })).tasks.map(({ schedule }) => schedule.jitter);
  expect(await jitters()).toEqual(["5m", "5m"]);
  const changes = (await carillon(["changes", "--by", "ann"], stage)).stdout;
  const [, id = ""] = /carillon undo (\S+) takes it back\n/.exec(changes) ?? [];
  expect((await carillon(["undo", id, "--dry-run"], stage)).stdout).toMatch(/^undo means 2 tasks\n/);
  expect((await carillon(["undo", id], stage)).stdout).toBe("restored 2 tasks\n");
  expect(await jitters()).toEqual([undefined, undefined]);
  for (const id of ["a", "b"]) await stage.client.delete({ owner: "acme", id });
});

it("restore puts a deleted task again, and deleted lists those that can be", async () => {
  expect((await carillon(["deleted"], stage)).stdout).toBe("No deleted tasks.\n");
  await stage.json(["rm", "nightly"]);
  expect((await carillon(["deleted", "--from", "1h"], stage)).stdout).toMatch(/^TASK .*\nsystem\/nightly /);
  expect(await stage.json(["restore", "nightly"])).toMatchObject({ outcome: "created" });
  expect(await stored()).toMatchObject({ payload: NIGHTLY.payload, retry: { attempts: 3 } });
  expect(await stage.json(["deleted"])).toEqual({ deleted: [] });
});

describe("edit --set", () => {
  it("changes the given fields only", async () => {
    const before = await stored();
    const edit = ["edit", "nightly", ...set("schedule.cron=0 4 * * *", "priority=5", "payload.format=csv")];
    expect(await stage.json(edit)).toMatchObject({ outcome: "updated", task: { id: "nightly" } });
    const after = await stored();
    expect(after).toMatchObject({
      schedule: { ...before.schedule, cron: "0 4 * * *" },
      payload: { format: "csv", zip: "01234" },
      priority: 5,
      retry: before.retry,
    });
    expect(await stage.json(edit)).toMatchObject({ outcome: "unchanged" });
  });

  it("takes JSON, and anything else as text", async () => {
    const values = [
      "payload.n=007",
      "payload.zip=01234",
      'payload.text="7"',
      "payload.no=null",
      'tags=["a","b"]',
    ];
    await stage.json(["edit", "nightly", ...set(...values, "payload.deep.er=[1]", "description=a = b")]);
    expect(await stored()).toMatchObject({
      payload: { format: "pdf", n: "007", zip: "01234", text: "7", no: null, deep: { er: [1] } },
      tags: ["a", "b"],
      description: "a = b",
    });
  });

  it("--unset brings a field's default back", async () => {
    await stage.json(["edit", "nightly", ...set("priority=5"), "--unset", "retry", "--unset", "payload.zip"]);
    await stage.json(["edit", "nightly", "--unset", "priority", "--unset", "expect.within"]);
    const { priority, retry, payload } = await stored();
    expect({ priority, retry, payload }).toEqual({
      priority: 0,
      retry: undefined,
      payload: { format: "pdf" },
    });
  });

  it("keeps a payload that is larger than this program accepts", async () => {
    const { redis, namespace } = stage;
    const client = new Client({ connection: redis.url, namespace, maxPayloadBytes: 1_000_000 });
    await client.put({ ...NIGHTLY, payload: "x".repeat(500_000) });
    await client.close();
    expect(await stage.json(["edit", "nightly", ...set("priority=5")])).toMatchObject({ outcome: "updated" });
  });

  it.each([
    ["priority", "INVALID_OPTION", "set: got priority. Use FIELD=VALUE"],
    ["=5", "INVALID_OPTION", "set: got =5."],
    ["a..b=5", "INVALID_OPTION", "fields: a..b is not a field."],
    ["payload.__proto__.polluted=1", "INVALID_OPTION", "fields: payload.__proto__.polluted is not a field."],
    [
      "payload.format.x=1",
      "INVALID_OPTION",
      "fields: payload.format has no fields. Set payload.format as a whole",
    ],
    ["schedule.cron=nonsense", "INVALID_SCHEDULE", "schedule.cron"],
    ["prioritty=5", "INVALID_TASK", "priorit"],
    ["owner=other", "INVALID_NAME", "owner"],
  ])("refuses %s with %s, and changes nothing", async (text, code, says) => {
    const before = await stored();
    const refused = await stage.refusal(["edit", "nightly", "--set", text]);
    expect(refused).toMatchObject({ exit: 2, code, message: expect.stringContaining(says) });
    expect(await stored()).toEqual(before);
  });

  it("reports a missing task", async () => {
    expect(await stage.refusal(["edit", "nothing", ...set("priority=1")])).toMatchObject({
      exit: 3,
      code: "TASK_NOT_FOUND",
    });
  });
});

describe("edit in an editor", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "edit-test-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs `carillon edit` with an editor that executes this shell script; $1 is the path of the file. */
  function edit(script: string, args: string[] = [], more: Record<string, string> = {}) {
    const editor = join(folder, "my editor");
    writeFileSync(editor, `#!/bin/sh\necho "$1" > '${folder}/path'\n${script}\n`, { mode: 0o755 });
    const env = { ...stage.env, VISUAL: `'${editor}'`, ...more };
    return carillon(["edit", "nightly", ...args], { env });
  }
  const draft = () => readFileSync(join(folder, "path"), "utf8").trim();

  it("puts the saved text, and keeps no file", async () => {
    const { code, stdout } = await edit(`cp "$1" '${folder}/seen'; sed -i 's/"0 3 /"30 4 /' "$1"`);
    expect(code).toBe(0);
    expect(stdout).toMatch(/updated +bar +system\/nightly +scheduled/);
    expect(await stored()).toMatchObject({ schedule: { cron: "30 4 * * *" }, payload: NIGHTLY.payload });
    const seen = JSON.parse(readFileSync(join(folder, "seen"), "utf8"));
    expect(seen).toMatchObject({ id: "nightly", type: "noop", retry: NIGHTLY.retry });
    expect(existsSync(dirname(draft()))).toBe(false);
  });

  it("reports an unchanged text", async () => {
    const { stdout } = await edit("true");
    expect(stdout).toMatch(/unchanged/);
  });

  it("keeps refused text in a file for this user only", async () => {
    const { code, stderr } = await edit(`sed -i 's/"0 3 /"0 99 /' "$1"`);
    expect(code).toBe(2);
    expect(stderr).toContain(`What you saved is in ${draft()}. [INVALID_SCHEDULE]`);
    expect(readFileSync(draft(), "utf8")).toContain('"0 99 * * *"');
    expect([statSync(draft()).mode & 0o777, statSync(dirname(draft())).mode & 0o777]).toEqual([0o600, 0o700]);
    rmSync(dirname(draft()), { recursive: true });
    expect(await stored()).toMatchObject({ schedule: NIGHTLY.schedule });
  });

  it("is refused if others have changed the task meanwhile", async () => {
    const put = `'${process.execPath}' '${join(import.meta.dirname, "../bin/carillon.js")}' edit nightly --set priority=9`;
    const { code, stderr } = await edit(`${put} >/dev/null; sed -i 's/"0 3 /"0 5 /' "$1"`, ["--json"]);
    expect(code).toBe(5);
    const { error } = JSON.parse(stderr);
    expect(error).toMatchObject({ code: "CONFLICT", message: expect.stringContaining(draft()) });
    expect(await stored()).toMatchObject({ schedule: NIGHTLY.schedule, priority: 9 });
    rmSync(dirname(draft()), { recursive: true });
  });

  it.each([
    ["exit 7", "INVALID_OPTION", /EDITOR: .*my editor' ended with 7\. Nothing was changed\./],
    [`echo '{' > "$1"`, "INVALID_TASK", /not JSON/],
    [`printf '"\\377"' > "$1"`, "INVALID_OPTION", /is not UTF-8/],
  ])("changes nothing if it does %j", async (script, code, says) => {
    const { code: exit, stderr } = await edit(script);
    expect(exit).toBe(2);
    expect(stderr).toMatch(says);
    expect(stderr).toContain(`[${code}]`);
    expect(await stored()).toMatchObject({ schedule: NIGHTLY.schedule });
    rmSync(dirname(draft()), { recursive: true });
  });

  it("needs an editor", async () => {
    const { code, stderr } = await edit("true", [], { VISUAL: "", EDITOR: "" });
    expect(code).toBe(2);
    expect(stderr).toBe(
      "carillon: EDITOR: missing. Set it to your editor, or use --set FIELD=VALUE. [INVALID_OPTION]\n",
    );
  });
});
