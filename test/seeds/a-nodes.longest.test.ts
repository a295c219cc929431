import type { Client, JobData } from "@carillon/sdk";
import { checkOccurrences, eventually, type FaultProxy } from "@carillon/testing";
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
    // Each claim counts the task's generation up.
    expect(new Set(jobs.map(({ data }) => data.occurrence.generation)).size).toBe(100);
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

const TTL = 2_000;

const node = (id: string, env: Record<string, string> = {}) =>
  stand.node({ CARILLON_NODE_ID: id, CARILLON_MUTEX_TTL_MS: String(TTL), ...env }).running();

/**
 * A node stopped during a claim, with its commit `withheld`. The other node did not take part so far. By the order of names the
 * heir is the queue's first node.
 */
async function midClaim(withheld: "question" | "answer", ids = ["victim", "heir"], env = {}) {
  const [wire, heirs] = [await stand.wire(), await stand.wire()];
  const victim = await node(ids[0] as string, { REDIS_URL: wire.url, ...env });
  const heir = await node(ids[1] as string, { REDIS_URL: heirs.url, ...env });
  heir.signal("SIGSTOP");
  const client = stand.client();
  const nominal = (await stand.time()) + 3_000;
  const inMidClaim = wire.withhold(withheld, COMMIT);
  await client.put({ ...bell, schedule: { at: nominal } });
  await inMidClaim;
  return { victim, heir, heirs, client, nominal };
}

describe("A6 a node that is killed in mid-claim leaves no mark behind", () => {
  /** Keys of a claim in progress. */
  const marks = () => stand.admin.keys(`{${stand.namespace}:bells}:~lock:*`);
  const runs = async (client: Client) =>
    (await client.runs.list("t")).map(({ node, nominal }) => ({ node, nominal }));
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

describe("A19 the other of two nodes takes over, whichever of them is the queue's first", () => {
  const runs = async (client: Client) => (await client.runs.list("t")).map(({ node }) => node);

  test.each([
    ["the queue's second node, which had relieved the first", "victim", "heir"],
    ["the queue's first node", "heir", "victim"],
  ])(
    "%s is killed with a decided occurrence, and counts as alive: the other does it",
    async (_, dies, lives) => {
      // No heartbeat is missed meanwhile, so no share becomes another's: only a node that relieves another can do it.
      const env = { CARILLON_HEARTBEAT_MS: "300000" };
      const { victim, heir, heirs, client } = await midClaim("question", [dies, lives], env);
      expect(await runs(client)).toEqual([]);
      const { questions } = heirs;
      heir.signal("SIGCONT");
      await victim.kill();
      await eventually(async () => expect(await runs(client)).toEqual([lives]), PATIENCE);
      expect(heirs.questions - questions).toBeLessThan(100);
      expect(await stand.queue("bells").getWaitingCount()).toBe(1);
    },
  );

  test("when the first one is missed, its share is the other's: it no longer waits for the dead one", async () => {
    const env = { CARILLON_HEARTBEAT_MS: "2000", CARILLON_MUTEX_TTL_MS: "500" };
    const { victim, heir, client } = await midClaim("question", ["heir", "victim"], env);
    heir.signal("SIGCONT");
    await victim.kill();
    // A node that relieves another waits for 200 ms each time.
    await stand.onTime(client, 200);
    expect(await runs(client)).toEqual(["victim"]);
  });
});

describe("A7 one timer to the next due time", () => {
  /** Time in ms after its start within which a node does not read again on its own: it does so every 30 s. */
  const UNTIL_RE_READ = 15_000;

  /** Puts a task from another process, due as soon as a put can be there in time. Resolves with the time it is due. */
  async function putFromElsewhere(id = "t"): Promise<number> {
    for (let ahead = 2_000; ; ahead *= 2) {
      const at = (await stand.time()) + ahead;
      const task = JSON.stringify({ ...bell, id, schedule: { at } });
      const { code, stdout } = await stand.carillon(["put", "--json"], task);
      expect(code).toBe(0);
      // A command may take long to start on a busy machine: its time has passed then.
      if (JSON.parse(stdout).state === "scheduled") return at;
      await stand.client().delete(id);
    }
  }

  async function enqueuedAt(client: Client, id = "t"): Promise<number> {
    const [run] = await eventually(async () => {
      const runs = await client.runs.list(id);
      return runs.length > 0 && runs;
    }, PATIENCE);
    return run?.enqueued ?? 0;
  }

  /** Waits until a node's start is over, and it has sent no command for 3 s. Returns the time of its last one. */
  async function quiet(wire: FaultProxy): Promise<number> {
    let [seen, since] = [-1, 0];
    await eventually(async () => {
      const now = await stand.time();
      if (wire.questions !== seen) [seen, since] = [wire.questions, now];
      return now - since > 3_000;
    }, PATIENCE);
    return since;
  }

  test("a task due in 2 s, put by another process, runs before the node would have read again on its own", async () => {
    for (let n = 1; ; n++) {
      // A node that died before must not be the queue's owner.
      stand.namespace += "-";
      const [wire, client] = [await stand.wire(), stand.client()];
      const node = await stand.node({ REDIS_URL: wire.url, CARILLON_HEARTBEAT_MS: "300000" }).running();
      const last = await quiet(wire);
      const at = await putFromElsewhere(`t${n}`);
      const enqueued = await enqueuedAt(client, `t${n}`);
      expect(enqueued).toBeGreaterThanOrEqual(at);
      expect(complaints(node)).toEqual([]);
      if (enqueued < last + UNTIL_RE_READ) return;
      // On a busy machine a put may take that long: only a node that never does it in time is at fault.
      expect(n).toBeLessThan(6);
      await node.kill();
    }
  });

  test("it runs at the next re-read if the message is lost", async () => {
    const wire = await stand.wire();
    const client = stand.client();
    wire.silence(`{${stand.namespace}}:wake`);
    await stand.node({ REDIS_URL: wire.url, CARILLON_REREAD_MS: "1500" }).running();
    const at = await putFromElsewhere();
    expect(await enqueuedAt(client)).toBeGreaterThanOrEqual(at);
    expect(wire.dropped).toBeGreaterThan(0);
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
    await quiet(wire);
    const { questions } = wire;
    const at = (await stand.time()) + 3_000;
    await client.put({ ...bell, schedule: { at } });
    expect(await enqueuedAt(client)).toBeGreaterThanOrEqual(at);
    // It reads and decides, takes the mutex and commits; and may have read again on its own.
    expect(wire.questions - questions).toBeLessThan(30);
  });
});

/** Warnings and errors, except that the namespace was empty at the node's start. */
function complaints(node: Program): unknown[] {
  return node.said.filter(({ level, what }) => Number(level) >= 40 && what !== "empty");
}
