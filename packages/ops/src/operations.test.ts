import type { Client, Runs } from "@carillon/sdk";
import { CHANGE_KINDS } from "@carillon/sdk/internal";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { HTTP_OPERATIONS, rightsAt } from "./http.js";
import { operation } from "./operation.js";
import type { OPERATIONS } from "./operations.js";

describe.each(HTTP_OPERATIONS.map((one) => [one.name, one] as const))("operation %s", (_, one) => {
  const { method, operation, parts, statuses } = one;

  it("has an input field for each part of its path, and refuses unknown fields", () => {
    expect(Object.keys(operation.input.shape)).toEqual(expect.arrayContaining([...parts]));
    const parsed = operation.input.safeParse({ "no such field": 1 });
    expect(parsed.error?.issues.map(({ code }) => code)).toContain("unrecognized_keys");
  });

  it("says which kind of change it logs unless it is a GET", () => {
    expect(operation.logs !== undefined).toBe(method !== "GET");
    if (operation.logs) expect(CHANGE_KINDS).toContain(operation.logs);
  });

  it("declares how repetitions do no harm unless it is a GET", () => {
    expect(operation.once !== undefined).toBe(method !== "GET");
  });

  it("lets no viewer change anything", () => {
    if (operation.logs) expect(operation.role).not.toBe("viewer");
  });

  it("can be described: schemas, a sentence, a status", () => {
    const options = { io: "input", unrepresentable: "any" } as const;
    expect(z.toJSONSchema(operation.input, options)).toMatchObject({ additionalProperties: false });
    if (operation.output) z.toJSONSchema(operation.output, options);
    expect(operation.summary).toMatch(/^[A-Z].*\.$/);
    expect(statuses).toEqual(operation.output ? expect.not.arrayContaining([204]) : [204]);
  });
});

/** Path of the resource of one task, below which the noun may be left out. */
const TASK = "/tasks/:queue/:owner/:id";
/** Nouns that only group operations: no resources, so paths leave them out. */
const GROUPS = ["health", "occurrences"];
/** Verbs that a method says already. */
const IMPLIED = {
  GET: ["list", "get"],
  POST: ["put", "create", "start"],
  PUT: ["put", "set", "replace", "allow"],
  DELETE: ["delete", "revoke"],
};

/** Its words without plurals: `queues.limit` is `PUT /queues/:queue/limits/:owner`, and `pauseMany` acts on `/tasks`. */
const wordsOf = (text: string) =>
  text
    .replace(/Many$/, "")
    .split(/[./-]|(?=[A-Z])/)
    .map((word) => word.toLowerCase().replace(/s$/, ""))
    .filter((word) => word !== "")
    .join(" ");

/** The paths that an operation's name allows. */
function pathsOf({ name, noun, method, path }: (typeof HTTP_OPERATIONS)[number]): string[] {
  const verb = name.slice(noun.length + 1);
  const isImplied = IMPLIED[method].includes(verb.replace(/Many$/, ""));
  const nouns = path.startsWith(TASK) ? [noun, ""] : [GROUPS.includes(noun) ? "" : noun];
  return [...nouns.map((noun) => `${noun}.${verb}`), ...(isImplied ? [noun] : [])].map(wordsOf);
}

it.each(HTTP_OPERATIONS.map((one) => [one.name, one] as const))("%s has the path of its name", (_, one) => {
  const rest = one.noun === "tasks" ? one.path : one.path.replace(TASK, "");
  expect(pathsOf(one)).toContain(wordsOf(rest.replace(/:\w+/g, "")));
});

/** Methods for programs only: they hold the connection, read as a stream, or put code's own types. */
type OfPrograms = "namespace" | "owner" | "forOwner" | "serverTime" | "close" | "events" | "enqueue" | "runs";
/** Computed from `tasks.list`, or made of several puts. */
type OfSeveral = "count" | "putMany" | "update";

it("the client's methods are called as the operations for runs and tasks", () => {
  expectTypeOf<keyof Runs>().toExtend<keyof typeof OPERATIONS.runs>();
  expectTypeOf<Exclude<keyof Client & string, OfPrograms | OfSeveral>>().toExtend<
    keyof typeof OPERATIONS.tasks
  >();
});

it("an operation that is not a GET and does not declare `once` does not compile", () => {
  const input = z.strictObject({});
  const rest = { role: "viewer", reach: "owner", logs: false, summary: "A test.", input } as const;
  const run = async () => {};
  // @ts-expect-error
  operation({ ...rest, run, http: "POST /tasks/pause" });
  operation({ ...rest, run, http: "POST /tasks/pause", once: "script" });
  operation({ ...rest, run, http: "GET /tasks/pause" });
});

it("no two operations share a method and a path", () => {
  const routes = HTTP_OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ":")}`);
  expect(new Set(routes).size).toBe(routes.length);
});

it("a request that is no operation's, but at its path, opens nothing", () => {
  expect(rightsAt("GET", "/quotas")).toEqual({ noun: "quotas", role: "viewer", reach: "namespace" });
  expect(rightsAt("HEAD", "/calendars/a")).toEqual({ noun: "calendars", role: "viewer", reach: "owner" });
  expect(rightsAt("PATCH", "/calendars/a")).toEqual({ noun: "calendars", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/Tokens/")).toEqual({ noun: "tokens", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/tokens/a")).toEqual({ noun: "tokens", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/quotas/a")).toEqual({ noun: "quotas", role: "viewer", reach: "namespace" });
  expect(rightsAt("GET", "/me")).toBeUndefined();
});
