import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { expect, it } from "vitest";
import { pages, textOf } from "../../../scripts/lib/pages.mjs";
import type { Io } from "../src/io.js";
import { Output } from "../src/output.js";
import { createProgram } from "../src/program.js";

type Command = ReturnType<typeof createProgram>;

const io = { env: {}, stdout: process.stdout, stderr: process.stderr } as unknown as Io;
const program = createProgram(io, new Output(io), false);

/** Command lines of a page: in blocks of code, and within sentences. */
const linesOf = (page: string) =>
  [...textOf(page).matchAll(/(?:^|`|\| |\bnpx )carillon ([a-z][^`#|\n]*)/gm)].map(([, line = ""]) =>
    line.trim(),
  );

/** Whether the command, or all commands, have the option. */
const knows = (command: Command, option: string) =>
  [command, program].some(({ options }) => options.some(({ long, short }) => [long, short].includes(option)));

/** Fault of a command line: a command or an option that does not exist. */
function problemOf(line: string): string | undefined {
  const words = line.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
  let command: Command = program;
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    if (!next) break;
    command = next as Command;
  }
  if (command === program) return `no command: carillon ${line}`;
  const unknown = words
    .filter((word) => word.startsWith("--") && word.length > 2)
    .map((word) => word.replace(/[=,.;:)].*$/, ""))
    .find((word) => word !== "--help" && !knows(command, word));
  return unknown && `no ${unknown}: carillon ${line}`;
}

it("the pages name commands and options that exist", () => {
  const lines = pages()
    .filter((page) => !/CHANGELOG/.test(page))
    .flatMap((page) => linesOf(page).map((line) => [page, line] as const));
  expect(lines.length).toBeGreaterThan(200);
  expect(
    lines.flatMap(([page, line]) => {
      const problem = problemOf(line);
      return problem ? [`${page}: ${problem}`] : [];
    }),
  ).toEqual([]);
});

/** Operations without a command: those that show them instead, or why people need none. */
const ELSEWHERE = {
  "alerts.undelivered": "alerts",
  "silences.list": "alerts",
  "names.list": "what a person has begun to type in a field",
  "namespaces.list": "status of an empty namespace",
  "occurrences.board": "a picture",
  "occurrences.ticks": "journal, skips",
  "occurrences.ticksMany": "list",
  "runs.failures": "journal --group",
  "tasks.counts": "list, with conditions",
  "tasks.replace": "put",
  "tasks.resumePlan": "resume --plan",
};

/** The commands that an operation's name allows. Those about tasks need no noun, nor do verbs that are not usual. */
function commandsOf({ name, noun }: (typeof HTTP_OPERATIONS)[number]): string[] {
  const verb = name
    .slice(noun.length + 1)
    .replace(/Many$/, "")
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const one = noun.replace(/s$/, "");
  const word = { get: "show", delete: "rm" }[verb] ?? verb;
  if (noun === "tasks") return [word];
  const usual: Record<string, string> = { list: noun, get: one, put: one, start: one, delete: `un${one}` };
  return [`${noun} ${word}`, usual[verb] ?? word];
}

it("each operation has the command of its name", () => {
  const paths = (command: Command, path: string): string[] =>
    (command.commands as Command[]).flatMap((one) => [
      `${path}${one.name()}`,
      ...paths(one, `${path}${one.name()} `),
    ]);
  const known = paths(program, "");
  const without = HTTP_OPERATIONS.filter((one) => !commandsOf(one).some((name) => known.includes(name)));
  expect(without.map(({ name }) => name).sort()).toEqual(Object.keys(ELSEWHERE).sort());
});

it("README.md has each command", () => {
  const leaves = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : (command.commands as Command[]).flatMap(leaves);
  const text = textOf("apps/cli/README.md");
  const names = leaves(program).map((one) => one.name());
  expect(names.filter((name) => !new RegExp(`\`(\\w+ )*${name}\\b`).test(text))).toEqual([]);
});
