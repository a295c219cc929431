import { readFileSync } from "node:fs";
import { type Client, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  billing,
  CHARGE,
  type Database,
  OPEN_STATEMENT,
  WRITE_STATEMENT,
} from "../../examples/postgres-handler/handler.mjs";
import { enqueued, gate, SILENT } from "../helpers.js";
import { PATIENCE, Stand } from "../seeds/harness.js";

/* Runs the example's code and the SQL of the docs on a real PostgreSQL (compiled to WebAssembly) and a real Redis. */

const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const SCHEMA = text("examples/postgres-handler/schema.sql");
const plain = (sql: string) => sql.replace(/\s+/g, " ").trim();

let database: PGlite;
beforeAll(async () => {
  database = new PGlite();
  await database.exec(SCHEMA);
});
afterAll(() => database?.close());
beforeEach(() => database.exec("TRUNCATE charge, statement"));

const rows = async (table: string) => (await database.query(`SELECT * FROM ${table} ORDER BY 1`)).rows;

it("docs/handlers.md shows this SQL", () => {
  const shown = plain(text("docs/handlers.md"));
  for (const sql of [CHARGE, OPEN_STATEMENT, WRITE_STATEMENT]) expect(shown).toContain(plain(sql));
  const tables = SCHEMA.replace(/--.*$/gm, "").split(";").map(plain).filter(Boolean);
  for (const table of tables) expect(shown).toContain(table);
});

describe("the SQL alone", () => {
  const open = () => database.query(OPEN_STATEMENT, ["acme"]);
  const write = async (body: object, fence: number) =>
    (await database.query(WRITE_STATEMENT, ["acme", JSON.stringify(body), fence])).rows.length;

  it("a charge that is delivered again is not made again, even with another amount", async () => {
    expect((await database.query(CHARGE, ["k", "acme", 500])).rows).toHaveLength(1);
    expect((await database.query(CHARGE, ["k", "acme", 500])).rows).toHaveLength(0);
    expect((await database.query(CHARGE, ["k", "acme", 999])).rows).toHaveLength(0);
    expect(await rows("charge")).toEqual([{ key: "k", account: "acme", cents: 500 }]);
  });

  it("writes of a zombie with an older fence are dropped, and so are repeated ones of one attempt", async () => {
    await open();
    // A fence of realistic size: microseconds since 1970.
    const first = 1_767_171_600_123_457;
    expect(await write({ by: "the first" }, first)).toBe(1);
    expect(await write({ by: "its successor" }, first + 1)).toBe(1);
    expect(await write({ by: "the zombie" }, first)).toBe(0);
    expect(await write({ by: "its successor, again" }, first + 1)).toBe(0);
    await open();
    expect(await rows("statement")).toEqual([
      { account: "acme", body: { by: "its successor" }, fence: first + 1 },
    ]);
  });

  it("without the condition the zombie would win (positive control)", async () => {
    await open();
    await write({ by: "its successor" }, 2);
    const unfenced = WRITE_STATEMENT.replace("AND fence < $3", "");
    await database.query(unfenced, ["acme", '{"by":"the zombie"}', 1]);
    expect(await rows("statement")).toMatchObject([{ body: { by: "the zombie" } }]);
  });
});

describe("with workers", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
  const stand = Stand.use();
  const pool: Database = { query: (sql, values) => database.query(sql, values) };

  /** A worker with the `collect` of the test. */
  async function work(collect: (account: string, signal: AbortSignal) => Promise<object>): Promise<Worker> {
    const worker = new Worker({
      connection: stand.redis.url,
      namespace: stand.namespace,
      types: [billing(pool, collect)],
      logger: SILENT,
      stalledInterval: 200,
      concurrency: 1, // a zombie that is busy does not take its own job again
    });
    worker.on("error", () => {});
    stand.later(() => worker.stop());
    await worker.start();
    return worker;
  }

  async function trigger(client: Client): Promise<string> {
    const type = billing(pool, async () => ({}));
    const payload = { account: "acme", cents: 500 };
    await client.put(type, { id: "acme", schedule: { every: "1h" }, crash: { delay: "1ms" }, payload });
    return enqueued(await client.trigger("acme")).run;
  }

  // Runs in this process, where PostgreSQL is compiled already.
  it("main.mjs runs to its end", async () => {
    for (const [name, value] of Object.entries(stand.env)) vi.stubEnv(name, value);
    const printed = vi.spyOn(console, "log").mockImplementation(() => {});
    vi.spyOn(console, "warn").mockImplementation(() => {});
    await import("../../examples/postgres-handler/main.mjs");
    expect(printed).toHaveBeenLastCalledWith([{ account: "acme", cents: 500 }]);
  });

  it("a retry after a failure charges once", async () => {
    const client = stand.client();
    let failing = true;
    await work(async () => {
      if (failing) throw new Error("not yet");
      return { by: "the retry" };
    });
    const run = await trigger(client);
    await eventually(async () => (await client.runs.get(run)).outcome === "failed", PATIENCE);
    failing = false;
    await (await stand.queue("billing").getJob(run))?.retry();
    await eventually(async () => (await client.runs.get(run)).outcome === "succeeded", PATIENCE);
    expect(await rows("charge")).toMatchObject([{ account: "acme", cents: 500 }]);
    expect(await rows("statement")).toMatchObject([{ body: { by: "the retry" } }]);
  });

  it("a zombie that wakes up after its successor has done its work changes nothing", async () => {
    const client = stand.client();
    const { promise: asleep, resolve: wake } = gate<object>();
    const { promise: fallen, resolve: fell } = gate();
    const zombie = await work(async () => {
      fell();
      return asleep;
    });
    const ended = new Promise((resolve) => zombie.once("fenced", resolve));
    const run = await trigger(client);
    await fallen;
    const successor = await work(async () => ({ by: "its successor" }));
    const settled = new Promise((resolve) => successor.once("settled", resolve));
    // Deletes the lock, as after a pause of the process: the next check finds the job stalled.
    await stand.admin.del(`${stand.queue("billing").toKey(run)}:lock`);
    await settled;
    wake({ by: "the zombie" });
    await ended;
    expect(await client.runs.get(run)).toMatchObject({ outcome: "succeeded", attempts: 2 });
    expect(await rows("charge")).toHaveLength(1);
    expect(await rows("statement")).toMatchObject([{ body: { by: "its successor" } }]);
  });
});
