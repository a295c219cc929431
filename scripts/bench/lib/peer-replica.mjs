// One replica of a peer in its own process: tasks that are due at each full second, each of which should begin on one
// replica only. Sends rows as lib/pulse.mjs reads them. These peers have no queue, so `produced` is the time at which
// the handler begins.
import { Redis } from "ioredis";
import { home } from "./crew.mjs";

const EACH_SECOND = "* * * * * *";
/** node-cron's default: how long no other replica takes the occurrence. */
const LOCK_MS = "30000";
/** Agenda polls every five seconds by default, which is too seldom for this bench. */
const AGENDA_LOOKS = 500;

const [peer, url, index, tasks] = process.argv.slice(2);
const ids = Array.from({ length: Number(tasks) }, (_, i) => `t${i}`);
const { add, ready } = home();
const began = (task, due) => add([due, Date.now(), Date.now(), task]);

const PEERS = { "node-cron": nodeCron, croner, agenda };
ready(await PEERS[peer]());

/** The replica that sets the key of an occurrence first owns it. */
function locks() {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  const take = async (key) => (await redis.set(`lock:${key}`, "1", "PX", LOCK_MS, "NX")) === "OK";
  return { take, end: () => redis.quit() };
}

/** Uses node-cron's own coordination, with this lock. */
async function nodeCron() {
  const { schedule } = await import("node-cron");
  const { take, end } = locks();
  const jobs = ids.map((task) =>
    schedule(EACH_SECOND, ({ date }) => began(task, date.getTime()), {
      name: task,
      distributed: true,
      runCoordinator: { shouldRun: take },
      suppressMissedWarning: true,
    }),
  );
  return async () => {
    for (const job of jobs) job.stop();
    await end();
  };
}

/** croner has no coordination, so the handler takes the lock. */
async function croner() {
  const { Cron } = await import("croner");
  const { take, end } = locks();
  const jobs = ids.map((task) => {
    // croner does not pass the occurrence's time to its handler: it is the time that it named before as the next one.
    let next = 0;
    const job = new Cron(EACH_SECOND, async (self) => {
      const due = next;
      next = Number(self.nextRun());
      if (await take(`${task}:${due}`)) began(task, due);
    });
    next = Number(job.nextRun());
    return job;
  });
  return async () => {
    for (const job of jobs) job.stop();
    await end();
  };
}

/** One name for each task, because Agenda's script reads all jobs of a name. The first replica stores them. */
async function agenda() {
  const { Agenda } = await import("agenda");
  const { RedisBackend } = await import("@agendajs/redis-backend");
  const limits = { maxConcurrency: ids.length, defaultConcurrency: 1 };
  const backend = new RedisBackend({ connectionString: url });
  const scheduler = new Agenda({ backend, processEvery: AGENDA_LOOKS, ...limits });
  scheduler.on("error", (error) => console.error(error));
  await scheduler.ready;
  const dues = noteDues(scheduler.db);
  for (const task of ids) scheduler.define(task, async () => began(task, dues.get(task)));
  if (index === "0") await scheduler.every(EACH_SECOND, ids);
  await scheduler.start();
  return () => scheduler.stop();
}

/**
 * When its handler begins, a job of Agenda already has its next time. The time it runs for is read when it is locked.
 */
function noteDues(store) {
  const dues = new Map();
  const lock = store.getNextJobToRun.bind(store);
  store.getNextJobToRun = async (...args) => {
    const job = await lock(...args);
    if (job) dues.set(job.name, job.nextRunAt.getTime());
    return job;
  };
  return dues;
}
