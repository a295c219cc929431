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

it("README.md has each command", () => {
  const leaves = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : (command.commands as Command[]).flatMap(leaves);
  const text = textOf("apps/cli/README.md");
  const names = leaves(program).map((one) => one.name());
  expect(names.filter((name) => !new RegExp(`\`(\\w+ )*${name}\\b`).test(text))).toEqual([]);
});
