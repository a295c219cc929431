import { operatorOf } from "@carillon/ops";
import { CarillonError, Client, defineTask, readEnvironment, type TaskInput, Worker } from "@carillon/sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { attempt, enqueued, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

const typed = defineTask("typed", { queue: QUEUE, payload: z.object({ n: z.number() }), handler: () => {} });
const THERE = { queue: QUEUE, owner: "system", id: "there" };

onEveryEngine("bad input", (connection) => {
  const bench = Bench.use(connection);
  let client: Client;
  beforeEach(async () => {
    client = new Client({ store: bench.store });
    await client.put(noop("there", { tags: ["x"] }));
  });

  function noop(id: string, rest: object = {}): TaskInput {
    return { id, type: "noop", queue: QUEUE, schedule: { every: "10s" }, ...rest };
  }
  const parsed = (text: string) => JSON.parse(text) as unknown;
  const bad = (id: string, ...[code, field]: [string, string]): [string, object, string, string] => [
    `the id ${JSON.stringify(id).slice(0, 20)}`,
    noop(id),
    code,
    field,
  ];

  const table: [what: string, input: object, code: string, field: string][] = [
    ["an empty cron", noop("t", { schedule: { cron: "" } }), "INVALID_SCHEDULE", "schedule"],
    [
      "a cron with too few fields",
      noop("t", { schedule: { cron: "0 3 * *" } }),
      "INVALID_SCHEDULE",
      "schedule",
    ],
    [
      "an unknown timezone",
      noop("t", { schedule: { cron: "0 3 * * *", timezone: "Moon/Base" } }),
      "INVALID_TIMEZONE",
      "schedule.timezone",
    ],
    ["every 0s", noop("t", { schedule: { every: "0s" } }), "INVALID_DURATION", "schedule"],
    ["every -1s", noop("t", { schedule: { every: "-1s" } }), "INVALID_DURATION", "schedule"],
    ["a day that never comes", noop("t", { schedule: { cron: "0 0 30 2 *" } }), "NEVER_FIRES", "schedule"],
    bad("a:b", "INVALID_NAME", "id"),
    bad("{a}", "INVALID_NAME", "id"),
    bad("a{", "INVALID_NAME", "id"),
    bad("a\nb", "INVALID_NAME", "id"),
    bad("a\n", "INVALID_NAME", "id"),
    bad("x".repeat(100 * 1024), "INVALID_NAME", "id"),
    bad("", "INVALID_NAME", "id"),
    [
      "a payload that is too large",
      noop("t", { payload: "x".repeat(256 * 1024) }),
      "PAYLOAD_TOO_LARGE",
      "payload",
    ],
    [
      "a payload with __proto__",
      noop("t", { payload: parsed('{"a":{"__proto__":{"admin":true}}}') }),
      "INVALID_PAYLOAD",
      "payload.a",
    ],
    ["a field that is misspelt", noop("t", { catchup: "all" }), "INVALID_TASK", "catchup"],
  ];

  async function refused(act: () => Promise<unknown>): Promise<CarillonError> {
    const before = await bench.dump();
    const error = await act().then(
      () => undefined,
      (failure: unknown) => failure,
    );
    // No key was changed, added or deleted.
    expect(await bench.dump()).toEqual(before);
    if (!(error instanceof CarillonError)) throw error ?? new Error("It was accepted.");
    expect(error.remedy, error.message).toMatch(/^[A-Z].*[.?]$/s);
    expect(error.message).toContain(error.remedy);
    expect(error.message).not.toMatch(/[\n\0]/);
    expect(error.message.length).toBeLessThan(800);
    return error;
  }

  it.each(table)("%s", async (_what, input, code, field) => {
    const error = await refused(() => client.put(input as TaskInput));
    expect(error.code).toBe(code);
    expect(error.field?.startsWith(field), error.field).toBe(true);
    // Refused too for a task that exists, and in a batch.
    const inBatch = await refused(() => client.putMany([noop("good"), input as TaskInput]));
    expect(inBatch.message).toBe(`[1].${error.message}`);
    if ((input as TaskInput).id === "t")
      await refused(() => client.put({ ...(input as TaskInput), id: "there" }));
  });

  it("is refused: a payload that does not match its schema", async () => {
    const input = { id: "t", schedule: { every: "10s" }, payload: { n: "5" } };
    const error = await refused(() => client.put(typed, input as never));
    expect(error).toMatchObject({ code: "INVALID_PAYLOAD", field: "payload.n" });
  });

  it("is refused: a payload above a smaller limit", async () => {
    const strict = new Client({ store: bench.store, maxPayloadBytes: 10 });
    expect(await strict.put(noop("fits", { payload: "12345678" }))).toMatchObject({ outcome: "created" });
    const error = await refused(() => strict.put(noop("t", { payload: "123456789" })));
    expect(error.code).toBe("PAYLOAD_TOO_LARGE");
  });

  it("is refused: no task at all", async () => {
    for (const input of [undefined, null, 5, "task", []]) {
      const error = await refused(() => client.put(input as never));
      expect(error.code).toBe("INVALID_TASK");
    }
  });

  it("is refused: references of all kinds", async () => {
    for (const ref of ["", "a:b", "a/b/c", "x\n", "x".repeat(100_000), { id: "{x}" }]) {
      expect((await refused(() => client.get(ref))).code).toBe("INVALID_NAME");
      expect((await refused(() => client.delete(ref))).code).toBe("INVALID_NAME");
      expect((await refused(() => client.trigger(ref))).code).toBe("INVALID_NAME");
    }
  });

  it("is refused: an unknown overlap policy", async () => {
    for (const overlap of ["queue_one", "", 5, null, ["allow"]] as never[]) {
      const error = await refused(() => client.trigger("there", { overlap }));
      expect(error).toMatchObject({ code: "INVALID_OPTION", field: "overlap" });
      const by = { key: "k", token: "t", node: "n" };
      const deeper = await refused(() => bench.store.claims.trigger(THERE, by, overlap));
      expect(deeper).toMatchObject({ code: "INVALID_OPTION", field: "overlap" });
    }
    expect(await client.get("there")).toMatchObject({ state: "scheduled" });
  });

  const wrong: [option: string, field: string, values: unknown[]][] = [
    ["lockDuration", "lockDuration", [0, Number.NaN, "10ms", -1, 999, 2 ** 31, null]],
    ["stalledInterval", "stalledInterval", [0, Number.NaN, -1, "30d", 0.5]],
    ["concurrency", "concurrency", [0, Number.NaN, "5", Number.POSITIVE_INFINITY, 1.5]],
    ["maxOutput", "maxOutput", [-1, Number.NaN, "x"]],
    ["queues", "queues", ["x", 5, {}, null]],
    [
      "queues",
      "queues[1]",
      [
        ["q", "é"],
        ["q", 5],
        [QUEUE, ""],
      ],
    ],
    ["types", "types", [5, "x", undefined, null]],
    ["types", "types[1]", [[typed, typed]]],
    ["types", "types[0]", [[5], [null], [{}], ["typed"], [{ ...typed, queue: "é" }]]],
  ];
  it.each(wrong)("is refused: a worker's %s (%s)", (option, field, values) => {
    for (const value of values) {
      const make = () => new Worker({ store: bench.store, types: [typed], [option]: value });
      const says = { code: "INVALID_OPTION", field, remedy: expect.stringMatching(/^[A-Z].*\.$/) };
      expect(make, String(value)).toThrow(expect.objectContaining(says));
    }
  });

  const misspelt: [what: string, act: (options: never) => unknown, options: object, field: string][] = [
    ["enqueue", (o) => client.enqueue(typed, { n: 1 }, o), { dealy: 5 }, "dealy"],
    ["enqueue", (o) => client.enqueue(typed, { n: 1 }, o), { rerun: { delay: "1s" } }, "rerun"],
    ["pause", (o) => client.pause("there", o), { cancelqueued: true }, "cancelqueued"],
    ["resume", (o) => client.resume("there", o), { form: "catch-up" }, "form"],
    ["trigger", (o) => client.trigger("there", o), { overlaps: "allow" }, "overlaps"],
    ["runs.list", (o) => client.runs.list("there", o), { limits: 1 }, "limits"],
    ["runs.cancel", (o) => client.runs.cancel("there@0.a", o), { who: "me" }, "who"],
    ["list", (o) => client.list(o), { onwer: "a" }, "onwer"],
    ["runs.journal", (o) => client.runs.journal(o), { since: 0 }, "since"],
    ["count", (o) => client.count(o), { owner: "a" }, "owner"],
    ["validate", (o) => client.validate(noop("t"), o), { cuont: 1 }, "cuont"],
    ["an operation", (o) => operatorOf(client).tasks.move({ id: "a", to: "b" }, o), { bye: "me" }, "bye"],
    ["a client", (o) => new Client(o), { connection: "redis://x", foo: 1 }, "foo"],
    [
      "a worker",
      (o) => new Worker(o),
      { connection: "redis://x", types: [typed], namespce: "n" },
      "namespce",
    ],
    ["a worker's stop", (o) => idleWorker().stop(o), { witin: 5 }, "witin"],
  ];
  const idleWorker = () => new Worker({ store: bench.store, types: [typed] });

  it.each(misspelt)(
    "is refused: %s with a misspelt option, or none at all",
    async (_what, act, options, field) => {
      const tried = async (given: unknown) => act(given as never);
      const error = await refused(() => tried(options));
      expect(error).toMatchObject({
        code: "INVALID_OPTION",
        field,
        remedy: expect.stringMatching(/^(Did you mean |Known: )/),
      });
      for (const given of [null, 5, "x"]) {
        expect(await refused(() => tried(given))).toMatchObject({ code: "INVALID_OPTION", field: "options" });
      }
    },
  );

  it.each([
    ["completed", "Did you mean settled?"],
    ["failed", "Did you mean settled?"],
    ["setled", "Did you mean settled?"],
    ["drained", "Known: started, settled, "],
  ])("a listener of an event %s that a worker does not have is refused", async (event, remedy) => {
    const worker = new Worker({ store: bench.store, types: [typed] });
    for (const listen of ["on", "once"] as const)
      expect(await refused(async () => worker[listen](event as "settled", () => {}))).toMatchObject({
        field: "event",
        remedy: expect.stringContaining(remedy),
      });
    worker.on("settled", () => {}).off("settled", () => {});
  });

  it("a put with the task before its type is refused", async () => {
    const swapped = client.put(noop("t") as never, typed as never);
    await expect(swapped).rejects.toMatchObject({ field: "type", remedy: "Call put(type, task)." });
  });

  it("a worker without task types is refused", async () => {
    expect(await refused(async () => new Worker({ connection: "redis://x", types: [] }))).toMatchObject({
      code: "INVALID_OPTION",
      field: "types",
    });
  });

  it("every variable of the environment is an option of clients and workers", async () => {
    const environment = readEnvironment({ REDIS_URL: "redis://127.0.0.1:1", CARILLON_NAMESPACE: "n" });
    await new Client(environment).close();
    await new Worker({ ...environment, types: [typed] }).stop();
  });

  const NO_TIMES = [Number.NaN, "x", "2026-01-01T00:00:00", new Date("x"), {}, null, 1e300];
  const NO_COUNTS = [Number.NaN, -1, 0, 0.5, 1e300, "5", null];
  const odd: [
    what: string,
    act: (value: never) => unknown,
    values: unknown[],
    code: string,
    field: string,
  ][] = [
    ["journal's from", (from) => client.runs.journal({ from }), NO_TIMES, "INVALID_OPTION", "from"],
    ["journal's to", (to) => client.runs.journal({ to }), NO_TIMES, "INVALID_OPTION", "to"],
    [
      "journal's outcome",
      (outcome) => client.runs.journal({ outcome }),
      ["x", 5, null],
      "INVALID_OPTION",
      "outcome",
    ],
    [
      "validate's from",
      (from) => client.validate(noop("t"), { from }),
      [...NO_TIMES, Number.POSITIVE_INFINITY],
      "INVALID_OPTION",
      "from",
    ],
    ["journal's cursor", (cursor) => client.runs.journal({ cursor }), [5, null], "INVALID_OPTION", "cursor"],
    ["list's state", (state) => client.list({ state }), ["x", 5, null], "INVALID_OPTION", "state"],
    [
      "list's search",
      (search) => client.list({ search }),
      [5, null, "x".repeat(501)],
      "INVALID_OPTION",
      "search",
    ],
    ["list's failing", (failing) => client.list({ failing }), ["true", 1, null], "INVALID_OPTION", "failing"],
    ["list's sort", (sort) => client.list({ sort }), ["nominal", 5, null], "INVALID_OPTION", "sort"],
    [
      "list's state by next time",
      (state) => client.list({ state, sort: "next" }),
      ["paused", "finished"],
      "INVALID_OPTION",
      "state",
    ],
    ["list's cursor", (cursor) => client.list({ cursor }), [5, null, {}], "INVALID_OPTION", "cursor"],
    [
      "enqueue's type",
      (type) => client.enqueue(type, { n: 1 } as never),
      ["reportx", undefined, null, 5, {}, { type: "report" }],
      "INVALID_OPTION",
      "type",
    ],
    [
      "put's type",
      (type) => client.put(type, { id: "t", schedule: { every: "1h" } } as never),
      ["reportx", null, 5, {}],
      "INVALID_OPTION",
      "type",
    ],
    ["a client's options", (o) => new Client(o), [undefined, null, 5], "INVALID_OPTION", "options"],
    [
      "a client's connection",
      (connection) => new Client({ connection }),
      [null, 5, {}, ""],
      "INVALID_OPTION",
      "connection",
    ],
    [
      "a client's connectTimeout",
      (connectTimeout) => new Client({ store: bench.store, connectTimeout }),
      [Number.NaN, -1, 0, 0.5, 1e12, "30d", null],
      "INVALID_OPTION",
      "connectTimeout",
    ],
    [
      "the text of a client's connectTimeout",
      (connectTimeout) => new Client({ store: bench.store, connectTimeout }),
      ["5", "soon", "0s", ""],
      "INVALID_OPTION",
      "connectTimeout",
    ],
    [
      "a client's maxPayloadBytes",
      (maxPayloadBytes) => new Client({ store: bench.store, maxPayloadBytes }),
      NO_COUNTS,
      "INVALID_OPTION",
      "maxPayloadBytes",
    ],
    [
      "a client's types",
      (types) => new Client({ store: bench.store, types }),
      [5, "x", null, {}],
      "INVALID_OPTION",
      "types",
    ],
    [
      "one of a client's types",
      (type) => new Client({ store: bench.store, types: [typed, type] }),
      [5, "typed", null, {}, typed],
      "INVALID_OPTION",
      "types[1]",
    ],
    [
      "defineTask's options",
      (o) => defineTask("x", o),
      [undefined, null, 5, "x"],
      "INVALID_OPTION",
      "options",
    ],
    ["a ref", (ref) => client.get(ref), [undefined, null, 5], "INVALID_NAME", "task"],
    ["putMany", (tasks) => client.putMany(tasks), [5, undefined, null, {}], "INVALID_TASK", "tasks"],
    ["a change", (change) => client.update("there", change), [undefined, {}], "INVALID_OPTION", "change"],
    [
      "a note",
      (note) => client.pause("there", { note }),
      [5, null, ["x"], "a\u0007b", "x".repeat(501)],
      "INVALID_OPTION",
      "note",
    ],
  ];

  it.each(odd)("is refused: a value that is not %s", async (_what, act, values, code, field) => {
    for (const value of values) {
      const error = await refused(async () => act(value as never));
      expect({ value, code: error.code, field: error.field }).toEqual({ value, code, field });
    }
  });

  it("explains the format of a delay that is invalid", async () => {
    for (const delay of [-1, 0.5, 1e15]) {
      const error = await refused(() => client.enqueue(typed, { n: 1 }, { delay }));
      expect(error).toMatchObject({ code: "INVALID_OPTION", field: "delay" });
      expect(error.message).toContain('Give a duration from 0s to 3660d: "30s", or whole milliseconds.');
    }
    for (const delay of ["5 mins", "300000", ""]) {
      const error = await refused(() => client.enqueue(typed, { n: 1 }, { delay }));
      expect(error).toMatchObject({ code: "INVALID_OPTION", field: "delay" });
    }
  });

  it("does not call a note too long that is not text", async () => {
    const error = await refused(() => client.pause("there", { note: 5 as never }));
    expect(error.message).toContain("not a text");
  });

  describe("odd but allowed input", () => {
    it("a delay of zero means now", async () => {
      const { task, run, at } = await client.enqueue(typed, { n: 1 }, { delay: 0 });
      expect([at, run]).toEqual([START, expect.any(String)]);
      expect(await client.runs.list(task)).toMatchObject([{ id: run, state: "queued" }]);
    });

    it("an `at` in the past is stored as finished, with the warning NO_NEXT", async () => {
      const past = noop("past", { schedule: { at: new Date(START - 60_000).toISOString() } });
      expect(await client.put(past)).toMatchObject({
        outcome: "created",
        state: "finished",
        nextExecution: undefined,
        warnings: [{ code: "NO_NEXT", message: expect.any(String) }],
      });
      expect(await client.get("past")).toMatchObject({ state: "finished", nextExecution: undefined });
    });

    it("the journal accepts times in every form", async () => {
      const triggered = enqueued(await client.trigger("there"));
      const { runs } = bench.store;
      const by = attempt({ made: 1 });
      const { fence } = (await runs.start(THERE, triggered.run, by)) as { fence: number };
      await runs.settle(THERE, triggered.run, { fence, outcome: "cancelled", error: "no" });
      for (const from of [START, START + 0.4, new Date(START), new Date(START).toISOString()]) {
        expect((await client.runs.journal({ from, to: from })).runs).toMatchObject([
          { outcome: "cancelled" },
        ]);
      }
      expect((await client.runs.journal({ from: new Date(START + 1) })).runs).toEqual([]);
      await expect(client.runs.journal({ from: START + 1, to: START })).rejects.toMatchObject({
        code: "INVALID_OPTION",
        field: "from",
        message: "from: after to. Give the earlier time first.",
      });
    });

    it("an identical put changes only the mark of the put itself", async () => {
      const input = noop("same", {
        payload: { b: 1, a: [null] },
        tags: ["z", "a"],
        subject: "s",
        priority: 9,
      });
      await client.put(input);
      const before = await bench.dump();
      await bench.clock.advance(1_234);
      expect(await client.put(input)).toMatchObject({ outcome: "unchanged", nextExecution: START + 10_000 });
      const after = await bench.dump();
      const registry = `{${bench.store.namespace}}:queues`;
      expect(Object.keys((after[registry] as { value: object }).value)).toEqual([QUEUE]);
      expect({ ...after, [registry]: 0 }).toEqual({ ...before, [registry]: 0 });
    });

    it("names may be words of BullMQ or JavaScript", async () => {
      for (const id of ["wait", "active", "meta", "id", "__proto__", "constructor", "0", "-", "."]) {
        expect(await client.put(noop(id, { overlap: "allow", payload: { id } }))).toMatchObject({
          outcome: "created",
        });
        await client.trigger(id);
        expect(await client.get(id)).toMatchObject({ id, payload: { id } });
      }
      const jobs = await bench.jobs();
      expect(jobs).toHaveLength(9);
      const seen: string[] = [];
      await bench.workAll(async (job) => seen.push(job.data.payload.id));
      expect(seen).toHaveLength(9);
    });
  });
});
