import { execFileSync } from "node:child_process";
import { type InputTo, type OperationName, operatorOf } from "@carillon/ops";
import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsole } from "../../console/src/create.js";
import { FORMS } from "../../console/ui/src/lib/copy-as.js";
import { requestOf, searchOf } from "../../console/ui/src/lib/request.js";
import { harness, task } from "./harness.js";

const bench = harness("call", { shared: true });
const TOKEN = "the-token-of-an-admin";
const URL_ = "http://console.test/ops/api/v1";
/** Characters that a shell would change. */
const NASTY = `it's "5 $HOME" \`id\` \\ ! \n%40 ${TOKEN.slice(0, 3)}`;
let console_: ReturnType<typeof createConsole>;

beforeAll(async () => {
  const auth = { admin: [TOKEN] };
  const logger = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {} };
  console_ = createConsole({
    client: bench.client,
    auth,
    basePath: "/ops",
    bullBoard: false,
    logger,
  } as never);
  await bench.client.put(task("a", { owner: "acme", tags: ["t"] }));
  await bench.client.put(task("b"));
});
afterAll(() => console_.close());

const formsOf = (name: OperationName, input: object) => {
  const { operation } = HTTP_OPERATIONS.find((one) => one.name === name)!;
  const { method, path, query, body } = requestOf(operation as never, input);
  const url = URL_ + path + searchOf(query);
  const made = { name, input, namespace: bench.namespace, method, url, body };
  return Object.fromEntries(Object.entries(FORMS).map(([form, text]) => [form, text(made)]));
};

/** The words that a POSIX shell makes of a command line. */
function wordsOf(line: string): string[] {
  const env = { CARILLON_TOKEN: TOKEN };
  const text = execFileSync("/bin/sh", ["-c", `for word in ${line}; do printf '%s\\0' "$word"; done`], {
    env,
  });
  return text.toString().split("\0").slice(0, -1);
}

async function byCurl(line: string): Promise<unknown> {
  const [program, , method = "", url = "", ...options] = wordsOf(line);
  expect(program).toBe("curl");
  const headers = new Headers();
  let body: string | null = null;
  for (let i = 0; i < options.length; i += 2) {
    const value = options[i + 1] as string;
    if (options[i] === "-d") body = value;
    else headers.append(...(value.split(": ") as [string, string]));
  }
  const response = await console_.fetch(new Request(url, { method, headers, body }));
  const text = await response.text();
  expect(response.ok, text).toBe(true);
  return text === "" ? {} : JSON.parse(text);
}

async function bySdk(text: string): Promise<unknown> {
  const [, call] = text.split("\n\n");
  const run = new Function("operatorOf", "client", `return (async () => (${call?.replace(/;$/, "")}))()`);
  return JSON.parse(JSON.stringify((await run(operatorOf, bench.client)) ?? {}));
}

const CALLS: { [Name in OperationName]?: InputTo<Name> } = {
  "tasks.list": { owner: "acme", tag: "t", sort: "next", limit: 5 },
  "tasks.get": { queue: "bar", owner: "acme", id: "a" },
  "runs.journal": { outcome: ["failed", "crashed"], text: NASTY },
  "names.list": { of: "owner", starts: "ac" },
  "tasks.pause": { queue: "bar", owner: "acme", id: "a", note: NASTY },
  "tasks.resume": { queue: "bar", owner: "acme", id: "a", missed: "skip" },
  "tasks.replace": {
    ...{ queue: "bar", owner: "system", id: "b" },
    task: task("b", { payload: { text: NASTY } }),
  } as never,
  "freezes.put": { owner: "acme", note: NASTY, dryRun: true },
  "tasks.tagMany": { tasks: ["acme/a", "b"], add: ["x", "y"], dryRun: true },
  "queues.pause": { queue: "bar", note: NASTY },
  "calendars.put": { name: "holidays", entries: ["2030-12-25"] },
};

describe("a call that the console copies", () => {
  it.each(Object.entries(CALLS))("%s is the same for the CLI, curl and the SDK", async (name, input) => {
    const { cli = "", curl = "", sdk = "" } = formsOf(name as OperationName, input);
    for (const text of [cli, curl, sdk]) expect(text).not.toContain(TOKEN);
    const [program, ...args] = wordsOf(cli);
    expect(program).toBe("carillon");
    const { code, stdout, stderr } = await bench.cli(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const fieldsOf = (answer: object) =>
      Object.keys(answer)
        .filter((field) => field !== "by")
        .sort();
    for (const answer of [await byCurl(curl), await bySdk(sdk)])
      expect(fieldsOf(answer as object)).toEqual(fieldsOf(JSON.parse(stdout)));
    if (name === "tasks.pause") expect((await bench.client.get("acme/a")).paused?.note).toBe(NASTY);
    if (name === "tasks.replace") expect((await bench.client.get("b")).payload).toEqual({ text: NASTY });
  });
});

it("an unknown operation, input that is not JSON and an unknown field are refused with a remedy", async () => {
  const refused = async (...args: string[]) => (await bench.refusal(["call", ...args])).message;
  expect(await refused("tasks.puase")).toContain("tasks.pause");
  expect(await refused("tasks.list", "{")).toContain("not JSON");
  expect(await refused("tasks.list", '{"ower":"a"}')).toContain("owner");
});
