// Reads the content of Redis at the end of a run: tasks, ledgers, run records, jobs, statistics. The checks use only this, never Carillon's own code.
import { scanAll } from "./servers.mjs";

const BATCH = 1_000;
const JOB_LISTS = ["wait", "active", "paused"];
const JOB_SETS = ["completed", "failed", "delayed", "prioritized", "waiting-children"];

/** The same command for many keys of one queue, in order. */
async function each(admin, keys, command) {
  const answers = [];
  for (let at = 0; at < keys.length; at += BATCH) {
    const pipeline = admin.pipeline();
    for (const key of keys.slice(at, at + BATCH)) command(pipeline, key);
    for (const [error, answer] of await pipeline.exec()) {
      if (error) throw error;
      answers.push(answer);
    }
  }
  return answers;
}

/**
 * `owner/id` of the tasks of a queue; in the index the type follows.
 * @returns {Promise<string[]>}
 */
export async function namesOf(admin, ours) {
  return (await admin.zrange(`${ours}tasks`, 0, "-1")).map((member) => member.split(" ")[0]);
}

/** Number of runs by outcome; such a field of a task's statistics holds "<runs> <their ms>". */
function countsOf(stats) {
  return Object.fromEntries(Object.entries(stats).map(([field, text]) => [field, Number.parseInt(text, 10)]));
}

/** @returns the content of one queue; times are numbers, all else is as stored */
export async function readQueue(servers, namespace, queue) {
  const { admin } = servers;
  const tag = `{${namespace}:${queue}}`;
  const ours = `${tag}:~`;
  const bull = `${tag}:${queue}:`;
  const names = await namesOf(admin, ours);
  const hashes = await each(
    admin,
    names.map((name) => `${ours}t:${name}`),
    (pipeline, key) => pipeline.hgetall(key),
  );
  const ledgers = await each(
    admin,
    names.map((name) => `${ours}ledger:${name}`),
    (pipeline, key) => pipeline.lrange(key, 0, -1),
  );
  const stats = await each(
    admin,
    names.map((name) => `${ours}s:${name}`),
    (pipeline, key) => pipeline.hgetall(key),
  );
  const runKeys = await scanAll(servers, `${escaped(ours)}r:*`);
  const runHashes = await each(admin, runKeys, (pipeline, key) => pipeline.hgetall(key));
  // Without BullMQ's keys of a job, and without the jobs of items.
  const jobKeys = (await scanAll(servers, `${escaped(bull)}*@*`)).filter(
    (key) => !/:|@.*_\d+$/.test(key.slice(bull.length)),
  );
  const jobHashes = await each(admin, jobKeys, (pipeline, key) =>
    pipeline.hmget(key, "data", "timestamp", "finishedOn"),
  );
  const listed = new Map();
  for (const list of JOB_LISTS) for (const id of await admin.lrange(bull + list, 0, -1)) listed.set(id, list);
  for (const set of JOB_SETS) for (const id of await admin.zrange(bull + set, 0, "-1")) listed.set(id, set);
  const due = (
    await Promise.all(
      Array.from({ length: 8 }, (_, shard) => admin.zrange(`${ours}due:${shard}`, 0, "-1", "WITHSCORES")),
    )
  ).flat();

  const places = await scanAll(servers, `${escaped(ours)}places:*`);
  const placed = await each(admin, places, (pipeline, key) => pipeline.zrange(key, 0, "-1"));

  return {
    queue,
    /** Runs that hold a place in the limit of their owner. */
    placed: placed.flat(),
    outcomes: await admin.hgetall(`${ours}outcomes`),
    tasks: new Map(
      names.map((name, i) => [
        name,
        { name, hash: hashes[i], ledger: ledgers[i].map(ledgerEntry), counts: countsOf(stats[i]) },
      ]),
    ),
    runs: runKeys.map((key, i) => runOf(queue, key.slice(ours.length + 2), runHashes[i])),
    jobs: jobKeys.map((key, i) => jobOf(key.slice(bull.length), jobHashes[i], listed)),
    due: new Map(Array.from({ length: due.length / 2 }, (_, i) => [due[2 * i], Number(due[2 * i + 1])])),
  };
}

function escaped(text) {
  return text.replace(/[[\]?*\\]/g, "\\$&");
}

export function ledgerEntry(line) {
  const [reason, from, to, count, at, by, run] = line.split(" ");
  return { reason, from: Number(from), to: Number(to), count: Number(count), at: Number(at), by, run };
}

function runOf(queue, id, hash) {
  // Another layout of records must not look like records without faults.
  if (!hash.of || !hash.info || !hash.state)
    throw new Error(`${id} is no record of a run: ${JSON.stringify(hash)}`);
  const [task, enqueued, node] = hash.of.split(" ");
  // Defaults are not stored, so they are filled in.
  const info = JSON.parse(hash.info);
  const { nominal, key = `${queue}/${task}@${nominal}`, due = nominal, trigger = "schedule" } = info;
  return {
    id,
    task,
    state: hash.state,
    outcome: hash.outcome,
    enqueued: Number(enqueued),
    finished: hash.finished === undefined ? undefined : Number(hash.finished),
    node,
    reopened: hash.reopened !== undefined,
    started: hash.started === undefined ? undefined : Number(hash.started),
    ...info,
    key,
    due,
    trigger,
  };
}

function jobOf(id, [data, _timestamp, finishedOn], listed) {
  const { occurrence, payload } = JSON.parse(data ?? "{}");
  return {
    id,
    ...occurrence,
    edit: payload?.edit ?? 0,
    name: occurrence && `${occurrence.owner}/${occurrence.task}`,
    finishedOn: finishedOn === null ? undefined : Number(finishedOn),
    list: listed.get(id),
  };
}
