import { operatorOf } from "@carillon/ops";
import { CONDITION_NAMES, CONDITIONS, type ConditionName } from "@carillon/sdk/conditions";
import { beforeEach, expect, test } from "vitest";
import { Output } from "../src/output.js";
import { createProgram } from "../src/program.js";
import { kebab } from "../src/text.js";
import { harness, task } from "./harness.js";
import { Sink } from "./helpers.js";

const bench = harness("conditions");
const { json, refusal } = bench;

/** An option of each condition. */
const SELECTS: Readonly<Record<ConditionName, readonly string[]>> = {
  queue: ["--queue", "foo"],
  owner: ["--owner", "acme"],
  tag: ["--tag", "ops"],
  set: ["--set", "billing"],
  state: ["--state", "paused"],
  outcome: ["--outcome", "succeeded,failed"],
  failing: ["--failing"],
  overdue: ["--overdue"],
  neverRan: ["--never-ran"],
  search: ["--search", "ACME/"],
  deliveries: ["--deliveries"],
};

/** Every command that has options of conditions: a new one is tested without being added here. */
const sink = { stdin: process.stdin, stdout: new Sink(), stderr: new Sink(), env: {} } as never;
const COMMANDS = createProgram(sink, new Output(sink), false).commands.filter((command) =>
  command.options.some(({ long }) => long === "--never-ran"),
);
/** Those that take the name of a task; an argument with choices, or a set, is none. */
const NAMED = COMMANDS.filter(({ registeredArguments }) =>
  registeredArguments.some((one) => one.argChoices === undefined && one.name() !== "set"),
);
const BULK = COMMANDS.filter(({ options }) => options.some(({ long }) => long === "--dry-run"));

/** Options that a command needs besides a selection. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  tag: ["--add", "new"],
  backfill: ["--from", "1h"],
  edit: ["--set", "description=x"],
};

/** Conditions of a command: `--set` of `edit` sets a field. */
const conditionsOf = (command: string) =>
  CONDITION_NAMES.filter((name) => command !== "edit" || name !== "set");

beforeEach(async () => {
  const acme = { owner: "acme", queue: "foo", tags: ["ops"] };
  await bench.client.putMany([task("a"), task("b", acme), task("c", acme)]);
  await bench.client.pause("acme/b");
});

const names = ({ tasks }: { tasks: readonly { owner: string; id: string }[] }) =>
  tasks.map(({ owner, id }) => `${owner}/${id}`);

test("the commands with conditions are known", () => {
  expect(COMMANDS.map((command) => command.name()).sort()).toEqual(
    [
      "list",
      "stats",
      "rm",
      "pause",
      "resume",
      "trigger",
      "tag",
      "backfill",
      "cancel",
      "edit",
      "export",
      "pull",
    ].sort(),
  );
});

test.each(NAMED.map((command) => command.name()))(
  "%s refuses each condition next to a name, and does nothing",
  async (command) => {
    const before = await json(["list"]);
    const subjects =
      command === "cancel" ? [["run@x.1"]] : command === "stats" ? [["a"]] : [["a"], ["a", "b"]];
    const ofName = command === "cancel" ? ["owner"] : ["owner", "queue"];
    for (const name of conditionsOf(command).filter((name) => !ofName.includes(name))) {
      for (const subject of subjects) {
        const args = [command, ...subject, ...SELECTS[name], ...(NEEDS[command] ?? [])];
        expect([args, await refusal(args)]).toMatchObject([
          args,
          { exit: 2, code: "INVALID_OPTION", field: kebab(name) },
        ]);
      }
    }
    expect(await json(["list"])).toEqual(before);
  },
);

test.each(BULK.map((command) => command.name()))("%s obeys each condition", async (command) => {
  const dry = async (options: readonly string[]) =>
    json([command, ...options, ...(NEEDS[command] ?? []), "--dry-run"]);
  const state = command === "pause" ? "scheduled" : command === "resume" ? "paused" : undefined;
  if (command === "cancel") await operatorOf(bench.client).tasks.triggerMany({ search: "/" });
  for (const name of conditionsOf(command)) {
    if ("needsOther" in CONDITIONS[name]) {
      expect([
        name,
        (await refusal([command, ...SELECTS[name], "--dry-run", ...(NEEDS[command] ?? [])])).exit,
      ]).toEqual([name, 2]);
      continue;
    }
    const listed = await json(["list", ...SELECTS[name], ...(state ? ["--state", state] : [])]);
    const { count, tasks = count } = await dry(SELECTS[name]);
    expect([name, tasks]).toEqual([name, names(listed).length]);
  }
  expect(names(await bench.client.list())).toHaveLength(3);
});
