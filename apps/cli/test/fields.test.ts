import type { Option } from "commander";
import { describe, expect, it } from "vitest";
import { argumentOf, optionsFor } from "../src/fields.js";
import { SHAPES } from "../src/inputs.js";
import type { Io } from "../src/io.js";
import { Output } from "../src/output.js";
import { createProgram } from "../src/program.js";
import { harness } from "./harness.js";

type Command = ReturnType<typeof createProgram>;

/** The value of an option that is given these texts, one after the other. */
const readBy = (option: Option | undefined, texts: readonly string[]) =>
  texts.reduce<unknown>((before, text) => option?.parseArg?.(text, before as undefined) ?? text, undefined);

describe("a field of an operation as an option", () => {
  const bulk = optionsFor("tasks.triggerMany", ["tag", "outcome", "overlap", "neverRan", "dryRun"], {});
  const [tag, outcome, overlap, neverRan] = bulk;

  it("is named and described by the schema", () => {
    expect(bulk.map(({ flags }) => flags)).toEqual([
      "-t, --tag <tag>",
      "--outcome <outcomes>",
      "--overlap <policy>",
      "--never-ran",
      "--dry-run",
    ]);
    expect(tag?.description).toBe("with this tag");
    expect(overlap?.description).toBe("policy while a run is open; default the task's");
    expect(outcome?.description).toBe("whose last run had this outcome; several: a,b");
    expect(neverRan?.attributeName()).toBe("neverRan");
  });

  it("names other fields as they are typed", () => {
    const { perMinute } = SHAPES["backfills.startMany"].fields;
    expect(perMinute?.about).toMatch(/; required unless --dry-run$/);
  });

  it("has the forms of a time, once", () => {
    const words = (times: "before" | "from") =>
      optionsFor("occurrences.load", ["from", "to"], { times }).map(({ description }) => description);
    expect(words("from")).toEqual([
      "2h from now, or ISO 8601, 14:00, tomorrow 09:00; default now",
      "as --from; default 24 hours after --from",
    ]);
    expect(words("before")[0]).toMatch(/^2h before now/);
  });

  it("keeps the name of its field under other flags", () => {
    const [option] = optionsFor("runs.list", ["limit"], { flags: { limit: "-l, --most <n>" } });
    expect(option?.attributeName()).toBe("limit");
    expect(option?.long).toBe("--most");
  });

  it("is read by its type", () => {
    const [limit] = optionsFor("runs.list", ["limit"], {});
    expect(readBy(limit, ["7"])).toBe(7);
    expect(() => readBy(limit, ["7.5"])).toThrow("Give a whole number.");
    expect(readBy(outcome, ["failed,lost", "crashed"])).toEqual(["failed", "lost", "crashed"]);
    const [add, perMinute] = [
      optionsFor("tasks.tagMany", ["add"], {})[0],
      optionsFor("backfills.startMany", ["perMinute"], {})[0],
    ];
    expect(readBy(add, ["a", "b,c"])).toEqual(["a", "b,c"]);
    expect(readBy(perMinute, ["0.5"])).toBe(0.5);
  });

  it.each([
    [overlap, "none", "overlap", "Use one of skip, allow, queue-one, queue-all, cancel-running."],
    [outcome, "failed,last", "outcome", "or several with commas."],
  ])("refuses other words, and names the option", (option, text, field, remedy) => {
    expect(() => readBy(option, [text])).toThrow(
      expect.objectContaining({
        report: expect.objectContaining({
          code: "INVALID_OPTION",
          field,
          remedy: expect.stringContaining(remedy),
        }),
      }),
    );
  });
});

describe("a field of an operation as an argument", () => {
  it("may be none, or JSON", () => {
    const runs = argumentOf("queues.limit", "runs", {});
    expect(runs.parseArg?.("none", undefined as never)).toBe(null);
    expect(runs.parseArg?.("3", undefined as never)).toBe(3);
    const policies = argumentOf("defaults.set", "policies", {});
    expect(policies.parseArg?.('{"timeLimit":"2h"}', undefined as never)).toEqual({ timeLimit: "2h" });
    expect(() => policies.parseArg?.("{", undefined as never)).toThrow("policies: not JSON.");
  });

  it("is [owner/]id for a task's, and may be left out or repeated", () => {
    const named = [
      argumentOf("tasks.restore", "id", {}),
      argumentOf("tasks.restore", "number", {}),
      argumentOf("types.allow", "types", {}),
      argumentOf("runs.get", "id", {}),
    ];
    expect(named.map((one) => [one.name(), one.required, one.variadic])).toEqual([
      ["task", true, false],
      ["number", false, false],
      ["types", true, true],
      ["run", true, false],
    ]);
  });
});

it("each option says what it is", () => {
  const io = { env: {}, stdout: process.stdout, stderr: process.stderr } as unknown as Io;
  const all = (command: Command): Command[] => [command, ...(command.commands as Command[]).flatMap(all)];
  const mute = all(createProgram(io, new Output(io), false)).flatMap((command) =>
    command.options.filter((one) => !one.description).map((one) => `${command.name()} ${one.flags}`),
  );
  expect(mute).toEqual([]);
});

describe("a command of an operation", () => {
  const { json, refusal } = harness("fields");

  it("names the author of its change", async () => {
    await json(["quotas", "set", "owner:acme", "--tasks", "9", "--by", "ann"]);
    const { changes } = await json(["changes", "--by", "ann"]);
    expect(changes).toMatchObject([{ kind: "quota", by: "ann" }]);
  });

  it("takes lists, and needs what the operation needs", async () => {
    await json(["types", "allow", "a", "b"]);
    expect(await json(["types"])).toEqual({ types: ["a", "b"] });
    expect(await refusal(["tokens", "create", "ann"])).toMatchObject({
      exit: 2,
      code: "INVALID_OPTION",
      message: expect.stringContaining("--role"),
    });
  });
});
