import type { Client, JobData } from "@carillon/sdk";
import { checkOccurrences, eventually } from "@carillon/testing";
import { describe, expect, test } from "vitest";
import { COMMIT, PATIENCE, type Program, Stand } from "./harness.js";

const stand = Stand.use();
const bell = { id: "t", type: "ring", queue: "bells" };

describe("A3 five nodes share the work", () => {
  const schedule = { every: "30ms", maxRuns: 100 };
  const hundred = { ...bell, schedule, overlap: "allow", catchUp: "all" } as const;

  async function checkJobs(client: Client, id = "t"): Promise<void> {
    const queue = stand.queue("bells");
    const all: { data: JobData }[] = await queue.getJobs();
    const jobs = all.filter(({ data }) => data.occurrence.task === id);
    expect(jobs).toHaveLength(100);
    expect(new Set(jobs.map(({ data }) => data.occurrence.nominal)).size).toBe(100);
    expect(new Set(jobs.map(({ data }) => data.occurrence.key)).size).toBe(100);
    expect(checkOccurrences(jobs, () => schedule)).toEqual({ duplicates: [], gaps: [], early: [] });
    expect(await client.runs.skips(id)).toEqual([]);
  }

  test("100 occurrences become 100 jobs of 100 nominal times", async () => {
    const kit = await stand.kit({ nodes: 5, worker: false });
    await kit.client.put(hundred);
    await kit.advance("10s");
    await checkJobs(kit.client);
    await kit.expect("t").fired(100).state("finished");
  });

  test("the same holds for five racing processes without a mutex", async () => {
    const env = { CARILLON_TEST_ONLY_SABOTAGE: "mutex" };
    const nodes = Array.from({ length: 5 }, (_, n) => stand.node({ ...env, CARILLON_NODE_ID: `n${n}` }));
    await Promise.all(nodes.map((node) => node.running()));
    const client = stand.client();
    const winners = new Set<string | undefined>();
    // On a busy machine one node may come first a hundred times, without a race: then repeat.
    for (let n = 1; n <= 5 && winners.size < 2; n++) {
      const id = `t${n}`;
      await client.put({ ...hundred, id });
      await eventually(
        async () => expect(await client.get(id)).toMatchObject({ state: "finished" }),
        PATIENCE,
      );
      await checkJobs(client, id);
      for (const { node } of await client.runs.list(id, { limit: 1_000 })) winners.add(node);
    }
    expect(winners.size).toBeGreaterThan(1);
  });
});

describe("A6 a node that is killed in mid-claim leaves no mark behind", () => {
  const TTL = 2_000;

  /** Keys of a claim in progress. */
  const marks = () => stand.admin.keys(`{${stand.namespace}:bells}:~lock:*`);
  const runs = async (client: Client) =>
    (await client.runs.list("t")).map(({ node, nominal }) => ({ node, nominal }));
  const node = (id: string, env: Record<string, string> = {}) =>
    stand.node({ CARILLON_NODE_ID: id, CARILLON_MUTEX_TTL_MS: String(TTL), ...env }).running();

  /** A node stopped during a claim, with its commit `withheld`. The other node did not take part so far. */
  async function midClaim(withheld: "question" | "answer") {
    const [wire, heirs] = [await stand.wire(), await stand.wire()];
    const victim = await node("victim", { REDIS_URL: wire.url });
    const heir = await node("heir", { REDIS_URL: heirs.url });
    heir.signal("SIGSTOP");
    const client = stand.client();
    const nominal = (await stand.time()) + 3_000;
    const inMidClaim = wire.withhold(withheld, COMMIT);
    await client.put({ ...bell, schedule: { at: nominal } });
    await inMidClaim;
    return { victim, heir, heirs, client, nominal };
  }

  /** Remaining lease of the victim's mutex, in ms. */
  async function leaseLeft(): Promise<number> {
    const [mark, ...more] = await marks();
    expect([mark, more]).toEqual([expect.any(String), []]);
    return stand.admin.pttl(mark ?? "");
  }

  test("killed before its commit: another node commits within the mutex TTL, without busy polling", async () => {
    const { victim, heir, heirs, client, nominal } = await midClaim("question");
    expect(await runs(client)).toEqual([]);
    const left = await leaseLeft();
    const since = performance.now();
    heir.signal("SIGCONT");
    await victim.kill();
    const { questions } = heirs;
    const other = { node: "heir", nominal };
    await eventually(async () => expect(await runs(client)).toEqual([other]), PATIENCE);
    // The lease must expire first; the rest is for a busy machine.
    const took = performance.now() - since;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(TTL);
    expect(took).toBeLessThan(left + 15_000);
    expect(heirs.questions - questions).toBeLessThan(50);
    expect(await stand.queue("bells").getWaitingCount()).toBe(1);
    await eventually(async () => expect(await marks()).toEqual([]), PATIENCE);
    expect(await client.get("t")).toMatchObject({ state: "finished" });
  });

  test("killed after its commit: no node repeats it", async () => {
    const { victim, heir, client, nominal } = await midClaim("answer");
    await eventually(async () => expect(await runs(client)).toEqual([{ node: "victim", nominal }]), PATIENCE);
    heir.signal("SIGCONT");
    await victim.kill();
    // The node that claims the next occurrence has recovered from the victim's claim.
    const later = (await stand.time()) + 3_000;
    await client.put({ ...bell, schedule: { at: later }, overlap: "allow" });
    await eventually(async () => expect(await runs(client)).toHaveLength(2), PATIENCE);
    expect(await runs(client)).toEqual([
      { node: "heir", nominal: later },
      { node: "victim", nominal },
    ]);
    expect(await stand.queue("bells").getWaitingCount()).toBe(2);
  });

  test("the only node, started again, is not blocked by its own mutex", async () => {
    const wire = await stand.wire();
    const victim = await node("n", { REDIS_URL: wire.url });
    const client = stand.client();
    const nominal = (await stand.time()) + 3_000;
    const inMidClaim = wire.withhold("question", COMMIT);
    await client.put({ ...bell, schedule: { at: nominal } });
    await inMidClaim;
    await victim.kill();
    const left = await leaseLeft();
    const since = performance.now();
    await node("n");
    const started = performance.now() - since;
    await eventually(async () => expect(await runs(client)).toEqual([{ node: "n", nominal }]), PATIENCE);
    expect(performance.now() - since).toBeLessThan(Math.max(left, started) + 15_000);
  });
});

describe("A7 one timer to the next due time", () => {
  /** Patience for a busy machine, below the 30 s after which a node checks on its own. */
  const SOON = 20_000;

  /** Puts the task from another process; resolves with the time it is due. */
  async function putFromElsewhere(): Promise<number> {
    // A command may take long to start on a busy machine.
    const before = await stand.time();
    await stand.carillon(["list"]);
    const now = await stand.time();
    const at = now + Math.max(2_000, 4 * (now - before));
    const { code, stdout } = await stand.carillon(
      ["put", "--json"],
      JSON.stringify({ ...bell, schedule: { at } }),
    );
    expect(code).toBe(0);
    // The put came in time.
    expect(JSON.parse(stdout)).toMatchObject({ state: "scheduled" });
    return at;
  }

  async function enqueuedAt(client: Client): Promise<number> {
    const [run] = await eventually(async () => {
      const runs = await client.runs.list("t");
      return runs.length > 0 && runs;
    }, PATIENCE);
    return run?.enqueued ?? 0;
  }

  test("a task due in 2 s, put by another process, runs in time", async () => {
    const client = stand.client();
    const node = await stand.node().running();
    const at = await putFromElsewhere();
    const enqueued = await enqueuedAt(client);
    // On its own the node would have checked after 30 s.
    expect(enqueued).toBeGreaterThanOrEqual(at);
    expect(enqueued).toBeLessThan(at + SOON);
    expect(complaints(node)).toEqual([]);
  });

  test("it runs at the next re-read if the message is lost", async () => {
    const wire = await stand.wire();
    const client = stand.client();
    wire.silence(`{${stand.namespace}}:wake`);
    await stand.node({ REDIS_URL: wire.url, CARILLON_REREAD_MS: "1500" }).running();
    const at = await putFromElsewhere();
    const enqueued = await enqueuedAt(client);
    expect(wire.dropped).toBeGreaterThan(0);
    expect(enqueued).toBeGreaterThanOrEqual(at);
    expect(enqueued).toBeLessThan(at + SOON);
  });

  test("until then the node sends no command to Redis, whatever the number of tasks", async () => {
    const [wire, client] = [await stand.wire(), stand.client()];
    const later = (await stand.time()) + 3_600_000;
    const waiting = Array.from({ length: 100 }, (_, n) => ({
      ...bell,
      id: `w${n}`,
      schedule: { at: later },
    }));
    await client.putMany(waiting);
    const node = stand.node({ REDIS_URL: wire.url, CARILLON_HEARTBEAT_MS: "300000" });
    await node.running();
    const at = (await stand.time()) + 3_000;
    await client.put({ ...bell, schedule: { at } });
    // The message has arrived by then.
    await eventually(async () => (await stand.time()) > at - 2_000, PATIENCE);
    const { questions } = wire;
    // Half a second ahead it reads and decides.
    await eventually(async () => (await stand.time()) > at - 900, PATIENCE);
    expect(wire.questions - questions).toBe(0);
    expect(await enqueuedAt(client)).toBeLessThan(at + SOON);
    expect(wire.questions - questions).toBeLessThan(20);
  });
});

/** Warnings and errors, except that the namespace was empty at the node's start. */
function complaints(node: Program): unknown[] {
  return node.said.filter(({ level, what }) => Number(level) >= 40 && what !== "empty");
}
