import { operatorOf } from "@carillon/ops";
import { HTTP_OPERATIONS, type HttpOperation, perform, Redactor } from "@carillon/ops/internal";
import type { Client } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callOf } from "../../../packages/ops/test/battery/battery.js";
import { World } from "../../../packages/ops/test/battery/world.js";
import { sharedRedis } from "../../../test/helpers.js";
import { openApi } from "../src/api/openapi.js";
import { apiRouter } from "../src/api/router.js";
import { createConsole } from "../src/create.js";
import { requestOf, searchOf } from "../ui/src/lib/request.js";
import { Conformance } from "./conformance.js";

/*
 * Each operation, called over HTTP with its example: its answer, its entry in the change log, its dry run, and the values that each of its
 * fields refuses. The tests of SDK, API and CLI have only what each of them adds. Rights over HTTP: test/security/console-routes.
 * Repetition, death and overtaking: packages/ops/test/battery.
 */

const NAMES = ["a:b", "*", "x".repeat(129)];
const TIMES = ["soon", "2026-01-01T00:00:00", "-1"];

/** Values that fields of a kind refuse: texts, which a query and a path can have too, and others. */
const KINDS: Record<string, readonly [texts: readonly string[], others: readonly unknown[]]> = {
  name: [NAMES, [5, null, {}]],
  text: [[], [5, null, {}]],
  line: [
    ["a\u0000b", "x".repeat(501)],
    [5, null, ["x"]],
  ],
  time: [TIMES, [1e300, null, {}]],
  duration: [
    ["0s", "100y", "soon"],
    [null, {}],
  ],
  flag: [["yes"], ["true", 1, null]],
  page: [
    ["0", "-1", "1e2", "1000001", "x"],
    [0, -1, 0.5, "5", null],
  ],
  count: [
    ["-1", "x"],
    [-1, 0.5, "5", null],
  ],
  rate: [[], [-1, 0, "5", null]],
  word: [["toString"], [5, null]],
  list: [[], [5, null, {}]],
  object: [[], [5, "x"]],
  // Any value can be one.
  data: [[], []],
  // Checked as the definition of a task, by a put.
  task: [[], []],
};

/** The kind of each input field, by its name; where operations mean different things by it, by theirs too. */
const FIELDS: Record<string, string> = {
  ...kind("name", "queue owner tag set key type"),
  ...kind("name", "tasks.move.to calendars.put.name tokens.create.name"),
  ...kind("text", "cursor id cause node starts text target url scope search pausedBy batch name"),
  ...kind("text", "version commit plan task changes.list.by tasks.resumePlan.note"),
  // One that names nothing finds nothing.
  ...kind("text", "runs.replayMany.owner runs.journal.owner runs.failures.owner runs.failures.queue"),
  // `*` stands for all owners.
  ...kind("text", "queues.limit.owner"),
  ...kind("most", "queues.limit.runs"),
  ...kind("line", "note"),
  ...kind("time", "from to at until time since expires"),
  ...kind("duration", "took within step every jitter wait for tolerance interval"),
  ...kind("flag", "dryRun failing overdue neverRan deliveries force all cancelQueued year"),
  ...kind("page", "limit"),
  ...kind("count", "offset number compare allowRemovals count waiting runs quotas.set.tasks"),
  ...kind("rate", "perMinute"),
  ...kind("word", "state outcome sort missed mode overlap only status kind format of by role"),
  ...kind("list", "tasks add remove entries types owners times protect adopt runs.replayMany.runs"),
  ...kind("object", "schedule policies calendars tasks.editMany.add"),
  ...kind("data", "payload ifRevision"),
  ...kind("task", "tasks.put.task tasks.replace.task tasks.validate.task tasks.validate.schedule"),
};

function kind(name: string, fields: string): Record<string, string> {
  return Object.fromEntries(fields.split(" ").map((field) => [field, name]));
}

/** Operations that make what their path names if it is not there, or have nothing to do. */
const NEED_NOTHING = [
  ...["calendars.put", "defaults.set", "quotas.set", "tasks.replace", "types.get"],
  ...["queues.limit", "queues.limits", "queues.delete", "sets.plan", "sets.apply"],
  // An id of a change has a form.
  "changes.undo",
];

const ADMIN = "the-token-of-an-admin";
const KNOWN = new Map(HTTP_OPERATIONS.map(({ name, operation }) => [name, operation]));
const redis = sharedRedis();
let world: World;
let conformance: Conformance;
beforeAll(async () => {
  world = await World.build(redis);
  const { store } = world.program();
  conformance = new Conformance(openApi(apiRouter(store, new Redactor([]))));
});
afterAll(async () => {
  await stage?.close();
  await world.close();
});

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown> & { error?: { code: string; field?: string } };
}

/** A console over the intact world, until something is changed. */
let stage: Stage | undefined;

class Stage {
  readonly #client: Client;
  readonly #console: ReturnType<typeof createConsole>;

  constructor(client: Client) {
    const logger = pino({ level: "silent" });
    this.#client = client;
    this.#console = createConsole({ client, auth: { admin: [ADMIN] }, bullBoard: false, logger });
  }

  static async intact(): Promise<Stage> {
    if (stage === undefined) {
      await world.again();
      stage = new Stage(world.program().client);
    }
    return stage;
  }

  /** Calls an operation over HTTP, as an admin. */
  async ask({ operation }: HttpOperation, input: object): Promise<Answer> {
    const { method, path, query, body } = requestOf(operation as never, input);
    const sent = body === undefined ? null : JSON.stringify(body);
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const url = `http://console.test/api/v1${path}${searchOf(query)}`;
    const response = await this.#console.fetch(new Request(url, { method, headers, body: sent }));
    await conformance.check(method, path, response.ok ? body : undefined, response);
    const text = await response.text();
    return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
  }

  /** The newest entry of the change log. */
  async newest(): Promise<unknown> {
    await storeOf(this.#client).changes.settled();
    return (await operatorOf(this.#client).changes.list({ limit: 1 })).changes[0];
  }

  async close(): Promise<void> {
    stage = undefined;
    await this.#console.close();
    await world.left();
  }
}

describe.each(HTTP_OPERATIONS.map((one) => [one.name, one] as const))("%s", (name, one) => {
  const { method, operation, parts, statuses } = one;
  const { shape } = operation.input;
  const given = { ...operation.example, ...(name === "runs.findItems" && { text: "a" }) };
  const example = () => callOf(world, KNOWN, name, given).input as Record<string, unknown>;
  const inBody = method !== "GET" && operation.body === undefined;

  it("refuses wrong values of each field, and fields that it does not have", async () => {
    const intact = await Stage.intact();
    const accepted: unknown[] = [];
    const refused = async (field: string, value: unknown) => {
      const { status, body } = await intact.ask(one, { ...example(), [field]: value });
      const { code = "", field: named = "" } = body.error ?? {};
      if (status !== 400 || !/^INVALID_/.test(code) || named.split(/[.[]/)[0] !== field)
        accepted.push([field, typeof value === "string" ? value.slice(0, 30) : value, status, body]);
    };
    for (const field of Object.keys(shape)) {
      const [texts, others] = KINDS[FIELDS[`${name}.${field}`] ?? FIELDS[field] ?? ""] ?? [["?"], []];
      for (const text of texts) await refused(field, text);
      if (parts.includes(field) || field === operation.body) continue;
      if (inBody) for (const other of others) await refused(field, other);
      if (!shape[field]?.safeParse(undefined).success) await refused(field, undefined);
    }
    await refused("by" in shape ? "whom" : "by", "eve");
    if (accepted.length > 0) await intact.close();
    expect(accepted.slice(0, 5)).toEqual([]);
  });

  // Tests that do not apply are left out: a skipped one would say that something is missing.
  if (parts.length > 0 && !NEED_NOTHING.includes(name))
    it("is a 404 for what is not there", async () => {
      const intact = await Stage.intact();
      for (const part of parts) {
        const { status, body } = await intact.ask(one, { ...example(), [part]: "none" });
        expect([part, status, body.error?.code]).toEqual([part, 404, expect.stringMatching(/_NOT_FOUND$/)]);
      }
    });

  if (operation.reach === "namespace")
    it("is refused for a client that is bound to an owner", async () => {
      await Stage.intact();
      const call = perform(world.program({ owner: "acme" }).client, operation, example());
      await expect(call).rejects.toMatchObject({ code: "FORBIDDEN" });
    });

  if (operation.reach !== "namespace")
    it("shows and changes nothing of another owner than the bound one, whom the input names", async () => {
      const intact = await Stage.intact();
      const before = await world.content();
      const input = { ...example(), ...("owner" in shape && { owner: "acme" }) };
      const { client } = world.program({ owner: "beta" });
      const answer = await perform(client, operation, input).catch(({ code }: { code: string }) => code);
      expect(JSON.stringify(answer) ?? "").not.toContain('"acme"');
      // A test of a destination is a task of its own.
      if (name === "alerts.test") return intact.close();
      expect(await world.content()).toBe(before);
    });

  it("does what its dry run shows, which changes nothing; answers as described, and logs its author", async () => {
    const intact = await Stage.intact();
    let dry: Answer | undefined;
    if ("dryRun" in shape) {
      const before = [await world.content(), await intact.newest()];
      dry = await intact.ask(one, { ...example(), dryRun: true });
      expect(dry.status, JSON.stringify(dry.body)).toBe(statuses[0]);
      expect([await world.content(), await intact.newest()]).toEqual(before);
    }
    const { status, body } = await intact.ask(one, example());
    expect(statuses, JSON.stringify(body)).toContain(status);
    for (const field of ["count", "total", "tasks"])
      if (dry && typeof body[field] === "number")
        expect([field, dry.body[field]]).toEqual([field, body[field]]);
    if (operation.logs) expect(await intact.newest()).toMatchObject({ kind: operation.logs, by: "admin" });
    if (operation.once !== "reads" && method !== "GET") await intact.close();
  });
});
