import { internalsOf } from "@carillon/store/internal";
import type { Dice } from "./dice.js";
import type { Equipment } from "./equipment.js";
import { IDS, QUEUE } from "./operations.js";
import { liveJobs } from "./promises.js";

/** The final runs of a task whose jobs the overlap policy takes into account (claim/lib/reckon.lua). */
const NEWEST = 5;

/**
 * Retries failed jobs of tasks that have no other open job: from then on no second run may start. With a live run, the
 * retry itself would break the promise. Returns the jobs; undefined: there were none.
 */
export async function retryFromOutside(equipment: Equipment): Promise<string | undefined> {
  const retried: string[] = [];
  for (const id of IDS) retried.push(...(await retryOneOf(equipment, id)));
  return retried.length > 0 ? retried.join(" ") : undefined;
}

async function retryOneOf({ observer, queue }: Equipment, id: string): Promise<string[]> {
  const runs = await observer.runs.list({ queue: QUEUE, owner: "system", id }, 100);
  const { bull } = internalsOf(observer).keys.queue(QUEUE);
  if ((await liveJobs(internalsOf(observer).link.client, bull, runs)).length > 0) return [];
  const open = runs.filter(({ state }) => state !== "final");
  const final = runs.filter(({ state }) => state === "final").slice(0, NEWEST);
  for (const run of [...open, ...final]) {
    const job = await queue.getJob(run.id);
    if (!job || !(await job.isFailed())) continue;
    await job.retry("failed");
    return [run.id];
  }
  return [];
}

/** Nodes that do not exist, but are on the list of live nodes for a while. */
export const GHOSTS = ["ghost-0", "ghost-1"];

/**
 * Changes the list of live nodes, and so the owners of shards: a node that does not exist joins or leaves, or a node is thought
 * dead until its next heartbeat.
 */
export async function changeShares({ observer, clock }: Equipment, dice: Dice): Promise<string> {
  const { registry } = observer;
  const listed = (await registry.nodes()).map(({ id }) => id);
  const id = dice.pick([...GHOSTS, ...listed]);
  if (listed.includes(id)) {
    await registry.removeNode(id);
    return `${id} leaves`;
  }
  const [host, pid, version, tzdata] = ["none", 0, "0", process.versions.tz ?? ""];
  const times = { started: clock.now, beat: clock.now, every: 300_000, clockOffset: 0 };
  await registry.beat({ id, host, pid, version, bullmq: version, tzdata, ...times, ready: true });
  return `${id} joins`;
}

/** Removes a job that no worker holds. Returns it; undefined: there was none. */
export async function removeFromOutside({ queue }: Equipment, dice: Dice): Promise<string | undefined> {
  const jobs = await queue.getJobs(["wait", "failed", "completed"], 0, 20);
  if (jobs.length === 0) return undefined;
  const job = dice.pick(jobs);
  await job.remove();
  return job.id;
}
