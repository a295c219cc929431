// Checks the invariants of the design against the data in Redis at the end, observations during the run, and
// acknowledgements to nodes.
import { SKIP_REASONS } from "@carillon/core";
import { OUTCOMES } from "@carillon/sdk/internal";
import { compileSchedule } from "@carillon/sdk/schedule";
import { itemsOfTheirOwn } from "./fan-outs.mjs";
import { heldStill } from "./holds.mjs";
import { isBlurred, told, withinLimits } from "./limits.mjs";

/** Reasons of final skips of nominal times, retries aside. */
const FINAL_SKIPS = new Set(SKIP_REASONS.filter((reason) => !/^(manual|retry)-/.test(reason)));

/**
 * @param {object} known
 * @param {any[]} known.tasks as load.mjs made them
 * @param {any[]} known.queues as evidence.mjs read them
 * @param {any} known.observer
 * @param {Map<string, any>} known.acks by run: what nodes were told is enqueued
 * @param {any[]} known.items what workers did of fan-outs
 * @param {number} known.deadline what was due by then must be decided; UTC ms of Redis time
 * @param {{ at: number, back?: number, forward?: number, mono?: { before: number, after: number } }[]} known.jumps of the Redis clock: its time before, and by how much
 * @param {import("./holds.mjs").Hold[]} known.holds
 * @param {Record<string, Record<string, number>>} known.limits by queue and owner: the most runs that its limit ever allowed
 */
export function check(known) {
  const found = {
    duplicates: [],
    gaps: [],
    early: [],
    limits: [],
    frozen: [],
    paused: [],
    stale: [],
    items: [],
    overlaps: [...known.observer.overlaps],
    pending: [],
    counters: [],
    regressions: [...known.observer.regressions],
    lostWrites: [],
    failoverDuplicates: [],
    undecided: [],
    // Amount checked: if these are 0, the other figures mean nothing.
    nominalTimes: 0,
    pairsOfRuns: 0,
    runsAtLimit: 0,
    frozenSkips: 0,
    runsAfterEdits: 0,
    itemsDone: 0,
  };
  const specs = new Map(
    known.tasks.map((task) => [`${task.queue} ${task.owner ?? "system"}/${task.id}`, task]),
  );
  for (const held of known.queues) {
    const byTask = occurrencesByTask(held, known.jumps);
    for (const [name, runs] of byTask) {
      decidedOnce(found, name, runs, ledgerOf(known, held, name));
      for (const run of runs) {
        if (run.trigger !== "manual") neverEarly(found, known, held, run);
      }
      const spec = specs.get(`${held.queue} ${name}`);
      if (spec && spec.overlap !== "allow") oneAtATime(found, known, name, runs);
    }
    for (const task of held.tasks.values()) {
      const spec = specs.get(`${held.queue} ${task.name}`);
      if (!spec) continue;
      nothingMissing(found, known, held, task, spec, byTask.get(task.name) ?? []);
      if (spec.retention) countersAgree(found, held, task);
      found.frozenSkips += ledgerOf(known, held, task.name).filter(
        ({ reason }) => reason === "frozen",
      ).length;
      atRest(found, known, held, task, spec);
    }
    const runs = [...byTask.values()].flat();
    withinLimits(found, known, held, runs);
    heldStill(found, { ...known, specs }, held, runs);
    itemsOfTheirOwn(found, known, held, specs);
    queueCountsAll(found, held);
    jobsAndRuns(found, held, specs);
  }
  acknowledged(found, known);
  return found;
}

/**
 * Runs by task, from records and jobs together, which have the same ids. A run is final if its job or its record says
 * so: a job that could not be settled is settled later.
 */
function occurrencesByTask({ runs, jobs }, jumps) {
  const all = new Map();
  for (const job of jobs) if (job.key) all.set(job.id, { ...job, task: job.name });
  for (const run of runs) if (run.key) all.set(run.id, { ...all.get(run.id), ...run });
  const byTask = new Map();
  for (const run of all.values()) {
    run.over = Math.min(
      run.finished ?? Number.POSITIVE_INFINITY,
      redisTime(run.finishedOn, jumps) ?? Number.POSITIVE_INFINITY,
    );
    const list = byTask.get(run.task) ?? [];
    list.push(run);
    byTask.set(run.task, list);
  }
  return byTask;
}

/** Converts a time of a worker, whose clock is the machine's, to Redis time, which was put forward and back. */
function redisTime(time, jumps) {
  if (time === undefined) return undefined;
  let offset = 0;
  for (const { at, back = 0, forward = 0 } of jumps) if (time >= at - offset) offset += forward - back;
  return time + offset;
}

function ledgerOf({ observer }, held, name) {
  const entries = new Map(observer.ledgers.get(`${held.queue} ${name}`));
  for (const entry of held.tasks.get(name)?.ledger ?? []) entries.set(`${entry.reason} ${entry.from}`, entry);
  return [...entries.values()].filter(({ reason }) => FINAL_SKIPS.has(reason));
}

/** Each occurrence is enqueued once, or skipped. */
function decidedOnce(found, name, runs, skips) {
  const byKey = new Map();
  for (const run of runs) {
    if (run.trigger === "retry") continue;
    const before = byKey.get(run.key);
    if (before) found.duplicates.push(`${run.key}: ${told(before)} and ${told(run)}`);
    else byKey.set(run.key, run);
    if (run.trigger === "manual") continue;
    for (const { reason, from, to } of skips) {
      if (from <= run.nominal && run.nominal <= to)
        found.duplicates.push(`${name} ${run.key}: ${run.id}, and skipped (${reason})`);
    }
  }
}

/** Nothing is early by the Redis clock. A pending occurrence that was due when the clock was put back is not early. */
function neverEarly(found, { jumps }, { queue }, { id, due, enqueued }) {
  if (enqueued >= due) return;
  const text = `${queue} ${id}: ${due - enqueued} ms`;
  if (jumps.some(({ at, back = 0 }) => due <= at + 1 && enqueued >= at - back - 1_000))
    found.undecided.push(`early: ${text}`);
  else found.early.push(text);
}

/** Its job was removed before a worker had it, and that was recorded a little later: its end is unknown. */
const vanished = (run) =>
  run.started === undefined && run.list === undefined && ["cancelled", "lost"].includes(run.outcome);

/** The reconciler checks again after this many ms (`LOOK_AGAIN` of the store) if its answer was lost. */
const LOOK_AGAIN = 5_000;

/**
 * The same between two attempts: a check removes the job of a run that is to be cancelled, its node dies, and the next
 * check records the end.
 */
const vanishedBetween = (run, over) =>
  run.started !== undefined && run.list === undefined && run.outcome === "cancelled" && over <= LOOK_AGAIN;

/**
 * Checked by the times of records and jobs. If a clock was put back, or a node died in between, the order of some pairs
 * is unknown.
 */
function oneAtATime(found, { jumps }, name, runs) {
  // In the order of the claims, each of which created a generation.
  const sorted = [...runs].sort((a, b) => a.generation - b.generation || a.enqueued - b.enqueued);
  for (const [i, run] of sorted.entries()) {
    const next = sorted[i + 1];
    if (!next) continue;
    found.pairsOfRuns += 1;
    if (run.over <= next.enqueued || vanished(run)) continue;
    const over = run.over - next.enqueued;
    const text = `${name}: ${told(run)} ended ${over} ms after ${told(next)} was enqueued`;
    if (isBlurred(jumps, run.over, next.enqueued) || vanishedBetween(run, over))
      found.undecided.push(`overlaps: ${text}`);
    else found.overlaps.push(text);
  }
}

/** Each nominal time up to the cursor has a run or a ledger entry, or is pending. */
function nothingMissing(found, known, held, { name, hash }, spec, runs) {
  if (spec.edited === "schedule" || spec.schedule.anchor) return;
  const schedule = compileSchedule({ ...spec.schedule, except: undefined }, spec.id);
  const pending = JSON.parse(hash.pending ?? "[]");
  const decided = new Set([...runs, ...pending].map(({ nominal }) => nominal));
  const skips = ledgerOf(known, held, name);
  const cursor = Number(hash.cursor ?? 0);
  for (let at = schedule.next(createdAt(hash)); at !== undefined && at <= cursor; at = schedule.next(at)) {
    const time = at;
    found.nominalTimes += 1;
    if (decided.has(time) || skips.some(({ from, to }) => from <= time && time <= to)) continue;
    found.gaps.push(`${held.queue} ${name}: nothing is known of ${new Date(time).toISOString()}`);
  }
}

/** Until its first change, a task's revision tells the time of its creation, in µs. */
function createdAt({ created, rev }) {
  return created === undefined ? Math.floor(Number(rev) / 1_000) : Number(created);
}

/** runs = the sum of their outcomes, as counted and as recorded. */
function countersAgree(found, held, { name, counts }) {
  const runs = held.runs.filter((run) => run.task === name && run.state === "final");
  for (const outcome of OUTCOMES) {
    const records = runs.filter((run) => run.outcome === outcome).length;
    const counted = counts[outcome] ?? 0;
    if (records !== counted)
      found.counters.push(`${held.queue} ${name}: ${records} ${outcome}, counted ${counted}`);
  }
}

/** Checks that the queue's counts are at least the sums over its tasks; they also include deleted tasks. */
function queueCountsAll(found, { queue, outcomes, tasks }) {
  for (const outcome of OUTCOMES) {
    const counted = Number(outcomes[outcome] ?? 0);
    const ofTasks = [...tasks.values()].reduce((sum, { counts }) => sum + (counts[outcome] ?? 0), 0);
    if (counted < ofTasks) found.counters.push(`${queue}: ${ofTasks} ${outcome}, counted ${counted}`);
  }
}

/** Nothing that was due is undecided, nothing waits for ever, and no run stays open if there are workers. */
function atRest(found, { deadline }, held, { name, hash }, spec) {
  const worked = spec.type !== "none";
  const due = Number(hash.due ?? hash.nominal);
  if (hash.state === "scheduled" && due <= deadline)
    found.pending.push(`${held.queue} ${name}: due since ${due}`);
  if (!worked || hash.state === "paused") return;
  for (const { key } of JSON.parse(hash.pending ?? "[]"))
    found.pending.push(`${held.queue} ${name}: ${key} waits`);
  for (const run of held.runs) {
    if (run.task === name && run.state !== "final")
      found.pending.push(
        `${held.queue} ${run.id}: still ${run.state}, its job ${held.jobs.find(({ id }) => id === run.id)?.list}`,
      );
  }
}

/** Each run has its job, each job its run, and each job is in one of BullMQ's lists. */
function jobsAndRuns(found, held, specs) {
  const jobs = new Map(held.jobs.map((job) => [job.id, job]));
  const runs = new Set(held.runs.map((run) => run.id));
  for (const run of held.runs) {
    if (run.state !== "final" && !jobs.has(run.id))
      found.gaps.push(`${held.queue} ${run.id}: open, and has no job`);
  }
  for (const job of held.jobs) {
    const spec = specs.get(`${held.queue} ${job.name}`);
    if (!job.list) found.pending.push(`${held.queue} ${job.id}: in no list of BullMQ's`);
    if (!runs.has(job.id) && spec?.edited !== "delete")
      found.gaps.push(`${held.queue} ${job.id}: a job without a record`);
  }
}

/** Checks that each run that Redis acknowledged to a node exists. Only a failover may lose it; then it may be enqueued again. */
function acknowledged(found, { acks, queues, tasks, observer }) {
  const mayBeLost = ({ queue, mono }) =>
    observer.failovers.some((one) => one.queue === queue && one.from <= mono && mono <= one.to);
  const deleted = new Set(tasks.filter(({ edited }) => edited === "delete").map(({ id }) => `system/${id}`));
  const held = new Map();
  const byTime = new Map();
  for (const { queue, runs, jobs } of queues) {
    for (const { id } of jobs) held.set(id, queue);
    for (const run of runs) {
      held.set(run.id, queue);
      byTime.set(`${queue} ${run.task} ${run.nominal}`, run);
    }
  }
  for (const [run, ack] of acks) {
    if (held.has(run) || deleted.has(ack.task)) continue;
    const text = `${ack.queue} ${ack.task} ${new Date(ack.nominal).toISOString()}: ${run} was acknowledged to ${ack.node}`;
    const again = byTime.get(`${ack.queue} ${ack.task} ${ack.nominal}`);
    if (!mayBeLost(ack)) found.gaps.push(`${text}, and is gone`);
    else {
      found.lostWrites.push(text);
      if (again) found.failoverDuplicates.push(`${text}, lost by Redis, and enqueued again as ${again.id}`);
    }
  }
}
