import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Output } from "../src/output.js";
import { createProgram } from "../src/program.js";
import { harness, task } from "./harness.js";
import { jsonLines } from "./helpers.js";

const bench = harness("json", { shared: true });

/**
 * A command line for each command, in an order in which each has something to do. `R`, `B`, `F` and `S` stand for the
 * ids of a run, a backfill, a freeze and a silence, `U` for that of a change, `C` for a config file, `O` for one
 * that does not exist, `P` for another one.
 */
const LINES: Record<string, readonly string[]> = {
  put: ["put"],
  edit: ["edit", "a", "--set", "priority=1"],
  validate: ["validate"],
  plan: ["plan", "--config", "C"],
  apply: ["apply", "--config", "C", "--yes"],
  drift: ["drift", "foo"],
  import: ["import", "crontab", "--out", "O"],
  export: ["export", "bullmq"],
  pull: ["pull", "foo", "--out", "P"],
  sets: ["sets"],
  list: ["list"],
  show: ["show", "a"],
  skips: ["skips", "a"],
  trigger: ["trigger", "a", "--overlap", "allow"],
  explain: ["explain", "a", "2026-01-01T00:00:00Z"],
  tag: ["tag", "a", "--add", "blue"],
  runs: ["runs", "a"],
  running: ["running"],
  run: ["run", "R"],
  compare: ["compare", "R"],
  items: ["items", "R"],
  "find-items": ["find-items", "a", "x"],
  "retry-items": ["retry-items", "R"],
  replay: ["replay", "R", "--overlap", "allow"],
  cancel: ["cancel", "R"],
  journal: ["journal"],
  changes: ["changes"],
  undo: ["undo", "U"],
  revisions: ["revisions", "a"],
  restore: ["restore", "a", "1"],
  deleted: ["deleted"],
  stats: ["stats"],
  trends: ["trends"],
  upcoming: ["upcoming"],
  load: ["load"],
  spread: ["spread", "2100-01-01T00:00:00Z", "1m", "--dry-run"],
  backfill: ["backfill", "a", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T02:00:00Z"],
  backfills: ["backfills"],
  "backfills show": ["backfills", "show", "B"],
  "backfills cancel": ["backfills", "cancel", "B"],
  freeze: ["freeze", "--queue", "bar", "--until", "2100-01-01"],
  freezes: ["freezes"],
  unfreeze: ["unfreeze", "F"],
  alerts: ["alerts"],
  "alerts test": ["alerts", "test", "https://hooks.example.com/", "--wait", "1ms"],
  silence: ["silence", "--kind", "slow", "--until", "2100-01-01"],
  unsilence: ["unsilence", "S"],
  status: ["status"],
  doctor: ["doctor"],
  nodes: ["nodes"],
  workers: ["workers"],
  queues: ["queues"],
  "queues pause": ["queues", "pause", "bar"],
  "queues resume": ["queues", "resume", "bar"],
  "queues limit": ["queues", "limit", "bar", "acme", "3"],
  "queues limits": ["queues", "limits", "bar"],
  defaults: ["defaults"],
  "defaults set": ["defaults", "set", "all", '{"timeLimit":"50%"}'],
  "defaults rm": ["defaults", "rm", "all"],
  quotas: ["quotas"],
  "quotas set": ["quotas", "set", "owner:acme", "--tasks", "9"],
  "quotas rm": ["quotas", "rm", "owner:acme"],
  types: ["types"],
  "types show": ["types", "show", "noop", "--queue", "foo"],
  "types allow": ["types", "allow", "noop"],
  "types any": ["types", "any"],
  calendars: ["calendars", "list"],
  "calendars put": ["calendars", "put", "holidays"],
  "calendars list": ["calendars", "list"],
  "calendars show": ["calendars", "show", "holidays"],
  "calendars rm": ["calendars", "rm", "holidays"],
  tokens: ["tokens"],
  "tokens create": ["tokens", "create", "ann", "--role", "viewer"],
  "tokens revoke": ["tokens", "revoke", "ann"],
  next: ["next", "0 9 * * *"],
  call: ["call", "queues.list"],
  completion: ["completion", "bash"],
  observe: ["observe", "a"],
  "shadow report": ["shadow", "report"],
  "shadow watch": ["shadow", "watch", "--queue", "bar", "--once"],
  cutover: ["cutover", "a"],
  pause: ["pause", "a"],
  resume: ["resume", "a"],
  move: ["move", "a", "foo", "--wait", "1ms"],
  rm: ["rm", "a"],
  "queues rm": ["queues", "rm", "bar", "--all"],
};

/** Commands that list: the field that holds the list, named as in the HTTP API. */
const LISTS: Record<string, string> = {
  list: "tasks",
  stats: "tasks",
  trends: "rows",
  runs: "runs",
  running: "runs",
  journal: "runs",
  skips: "skips",
  items: "items",
  "find-items": "items",
  changes: "changes",
  revisions: "revisions",
  deleted: "deleted",
  plan: "items",
  apply: "items",
  drift: "drift",
  import: "schedules",
  export: "tasks",
  sets: "sets",
  upcoming: "upcoming",
  forecast: "upcoming",
  backfills: "backfills",
  freezes: "freezes",
  alerts: "alerts",
  doctor: "findings",
  nodes: "nodes",
  workers: "workers",
  queues: "queues",
  quotas: "quotas",
  types: "types",
  "calendars list": "calendars",
  "shadow report": "reports",
  tokens: "tokens",
};

const INPUTS: Record<string, string> = {
  put: JSON.stringify(task("a")),
  validate: JSON.stringify([task("b")]),
  import: "0 4 * * * /srv/backup.sh\n",
  "calendars put": "2026-12-25\n",
};

/** Commands that are refused here, because the change cannot be undone, no run has failed items, one run is open, and BullMQ has no scheduler. */
const REFUSED = new Set(["undo", "retry-items", "move", "cutover"]);

describe("--json", () => {
  const ids: Record<string, string> = {};
  const folder = mkdtempSync(join(tmpdir(), "carillon-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  beforeAll(async () => {
    ids["C"] = join(folder, "set.json");
    ids["U"] = "1-0";
    ids["O"] = join(folder, "new.json");
    ids["P"] = join(folder, "pulled.json");
    writeFileSync(ids["C"], JSON.stringify({ set: "foo", tasks: [task("c")] }));
    await bench.client.put(task("a"));
    const triggered = await bench.client.trigger("a");
    if ("run" in triggered) ids["R"] = triggered.run;
  });

  it("is tested for every command", () => {
    const streams = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} };
    const program = createProgram(streams, new Output(streams), true);
    const paths = (command: Command, path: string[]): string[] =>
      command.commands.flatMap((one) => [
        [...path, one.name()].join(" "),
        ...paths(one, [...path, one.name()]),
      ]);
    // A group, and commands for developers at a terminal.
    const others = ["shadow", "dev", "init"];
    expect(Object.keys(LINES).sort()).toEqual(
      paths(program, [])
        .filter((path) => !others.includes(path))
        .sort(),
    );
  });

  it.each(Object.keys(LINES))("prints one object for %s", async (name) => {
    const args = (LINES[name] as string[]).map((arg) => ids[arg] ?? arg);
    const { stdout, stderr } = await bench.cli([...args, "--json"], INPUTS[name]);
    const documents = jsonLines(REFUSED.has(name) ? stderr : stdout);
    expect(documents, stderr).toEqual([expect.any(Object)]);
    const [document = {}] = documents;
    expect(Array.isArray(document)).toBe(false);
    if (REFUSED.has(name)) expect(document).toEqual({ error: expect.any(Object) });
    const list = LISTS[name];
    if (list !== undefined) expect(document).toMatchObject({ [list]: expect.any(Array) });
    if (name === "backfill") ids["B"] = document["id"] as string;
    if (name === "silence") ids["S"] = document["id"] as string;
    if (name === "freeze") ids["F"] = document["id"] as string;
  });
});
