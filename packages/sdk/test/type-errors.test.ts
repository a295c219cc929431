import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
let folder: string;
/** Compiler messages by statement. */
let errors: Map<string, string>;

/** Compiler messages for a program, in a folder that resolves our packages. */
function compile(program: string): Promise<string> {
  mkdirSync(join(root, ".carillon"), { recursive: true });
  folder = mkdtempSync(join(root, ".carillon", "types-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "program.ts"), program);
  // The types that users get.
  const compilerOptions = { customConditions: [] };
  const options = { extends: "../../tsconfig.test.json", compilerOptions, include: ["program.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], (_, stdout) => resolve(stdout));
  });
}

/** Errors of a program by line: the statement, and the compiler's message. */
async function errorsOf(statements: readonly string[]): Promise<Map<string, string>> {
  const head = [
    'import { Client, defineTask, implement, task, type TaskInput, Worker } from "@carillon/sdk";',
    'import { z } from "zod";',
    "declare const client: Client;",
    "interface Row { id: number; at: Date }",
    "const payload = z.object({ tenant: z.string() });",
    'const report = defineTask("report", { queue: "q", payload, handler: () => {} });',
    'const contract = defineTask("report", { queue: "q", payload });',
    "declare const log: (text: string) => void;",
    "declare const connection: string;",
    'const base = { id: "a", type: "t", queue: "q" };',
    'const input = { id: "a", payload: { tenant: "x" } };',
    'const schedule = { every: "1h" };',
  ];
  const said = await compile([...head, ...statements].join("\n"));
  const errors = new Map<string, string>();
  let statement = "";
  for (const line of said.split("\n")) {
    const at = /program\.ts\((\d+),\d+\): error TS\d+: (.*)/.exec(line);
    if (at) statement = statements[Number(at[1]) - head.length - 1] ?? `line ${at[1]}`;
    if (line !== "") errors.set(statement, `${errors.get(statement) ?? ""}${at ? at[2] : line}\n`);
  }
  return errors;
}

const RIGHT = [
  'client.put({ ...base, schedule: { every: 60_000, jitter: 500 }, timeLimit: "50%", linger: 1_000 });',
  'client.put({ ...base, schedule: { any: [{ cron: "* * * * *" }, { at: 5 }], except: [{ named: "x" }] } });',
  'client.put({ ...base, schedule: { every: "1h", anchor: "finish" } }, { ifRevision: "absent" });',
  'client.put(report, { ...input, schedule: { calendar: "Sat" } }, { ifRevision: "absent" });',
  "client.put(task(report, { ...input, schedule }));",
  'client.putMany([1, 2].map((n) => task(report, { ...input, id: "a" + n, schedule })));',
  "client.putMany(new Set<TaskInput>());",
  'client.update("a", (stored) => ({ ...stored, priority: 1 }));',
  'defineTask("row", { queue: "q", payload, handler: async (): Promise<Row> => ({ id: 1, at: new Date() }) });',
  'defineTask("date", { queue: "q", payload, handler: () => new Date() });',
  'defineTask("end", { queue: "q", payload, handler: (_, { partial }) => (_.tenant ? partial() : { a: 1 }) });',
  "client.put(contract, { ...input, schedule });",
  "client.putMany([task(contract, { ...input, schedule })]);",
  'client.enqueue(contract, { tenant: "x" });',
  "new Client({ connection, types: [contract, report] });",
  "new Worker({ connection, types: [implement(contract, ({ tenant }) => log(tenant))] });",
  "implement(contract, async ({ tenant }, { partial, signal }) => (signal.aborted ? partial() : { tenant }));",
  "implement(contract, { generate: ({ tenant }) => [tenant], process: (item) => log(item), concurrency: 2 });",
];

/** Mistakes, each with words that its error must contain. */
const MISTAKES: Record<string, RegExp> = {
  'client.put({ ...base, schedule: { cron: "* * * * *", every: "1h" } });': /^Type '{ cron.*'ScheduleInput'/,
  'client.put({ ...base, schedule: { any: [{ cron: "* * * * *", jitter: "1s" }] } });': /'undefined'/,
  'client.put({ ...base, schedule: { ...schedule, except: [{ cron: "* * * * *", at: 5 }] } });': /Exclusion/,
  'client.put({ ...base, schedule: { every: "1h", anchor: "finish", origin: "x" } });': /'origin'/,
  "client.put({ ...base, schedule: { every: true } });": /'Duration/,
  "client.put({ ...base, schedule, attemps: 3 });": /'attemps' does not exist in type 'TaskInput'/,
  'client.put({ ...base, schedule, overlap: "queue" });': /"queue-all"/,
  'client.put({ id: "a", type: "t", schedule });': /^Property 'queue' is missing .* 'TaskInput'/,
  "client.put({ ...base, schedule }, { ifRevison: 'absent' });": /Did you mean to write 'ifRevision'/,
  "client.put(report, { ...input, payload: { tenant: 1 }, schedule });": /^Type 'number' is not assignable/,
  'client.put(report, { ...input, schedule, catchup: "all" });': /Did you mean to write 'catchUp'/,
  "client.put(report, { ...input, schedule }, { ifRevison: 'absent' });":
    /Did you mean to write 'ifRevision'/,
  'task(report, { id: "a", payload: { tenant: 1 }, schedule });': /^Type 'number' is not assignable/,
  "client.put(contract, { ...input, payload: { tenant: 1 }, schedule });": /^Type 'number' is not assignable/,
  "client.enqueue(contract, { tenant: 1 });": /^Type 'number' is not assignable/,
  'client.putMany([{ id: "b", type: "t", schedule }]);': /^Property 'queue' is missing .* 'TaskInput'/,
};

const MISTAKES_IN_TYPES: Record<string, string> = {
  'defineTask("big", { queue: "q", payload, handler: async () => 1n });':
    "Type 'bigint' is not assignable to type 'Result'",
  "implement(contract, ({ tenant }) => tenant.month);": "Property 'month' does not exist on type 'string'",
  "implement(contract, async () => 1n);": "Type 'bigint' is not assignable to type 'Result'",
  "implement(contract, { generate: ({ tenant }) => [tenant], process: (item) => item.month });":
    "Property 'month' does not exist on type 'string'",
  "new Worker({ connection, types: [contract] });": "Property 'handler' is missing",
  'defineTask("lost", { payload, handler: () => {} });': "Property 'queue' is missing",
};

// Compiles one program for all, because the compiler takes seconds to start.
beforeAll(async () => {
  errors = await errorsOf([...RIGHT, ...Object.keys(MISTAKES), ...Object.keys(MISTAKES_IN_TYPES)]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(RIGHT)("the compiler accepts valid code: %s", (statement) => {
  expect(errors.get(statement)).toBeUndefined();
});

it.each(Object.entries(MISTAKES))("a mistake in a put has one clear error: %s", (mistake, words) => {
  const said = errors.get(mistake);
  expect(said).toMatch(words);
  expect(said).not.toMatch(/No overload|Iterator/);
  expect(said?.split("\n").length, said).toBeLessThanOrEqual(4);
});

it.each(Object.entries(MISTAKES_IN_TYPES))(
  "the error is reported for the handler, not for a fan-out: %s",
  (mistake, words) => {
    expect(errors.get(mistake)).toContain(words);
    expect(errors.get(mistake)).not.toContain("FanOutOptions");
  },
);
