import { isAlive, isSilent, type WorkerInfo } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, process } from "../shapes.js";

const texts = z.array(z.string()).readonly();
const worker = z.object({
  ...process,
  queues: texts,
  types: texts.describe("The task types that it handles."),
  versions: z.object({ carillon: z.string(), bullmq: z.string(), node: z.string() }),
  stopping: z.boolean().describe("It takes no more jobs, and waits for those under way."),
  state: z
    .enum(["ready", "stopping", "silent", "dead"])
    .describe("Silent: it missed a heartbeat. Dead: three."),
  running: count.optional().describe("Runs under way; missing for a caller that is bound to an owner."),
  runs: z
    .array(z.object({ run: z.string(), queue: z.string(), task: z.string() }))
    .readonly()
    .describe("The first 20 of these."),
  lacking: z
    .array(z.object({ queue: z.string(), type: z.string(), since: z.number() }))
    .readonly()
    .optional()
    .describe("The types that it lacked within the last ten minutes."),
});

type WorkerView = z.output<typeof worker>;

/** Plain BullMQ workers do not register: `queues.list` counts them. */
export const listWorkers = operation({
  http: "GET /workers",
  role: "viewer",
  reach: "local",
  summary:
    "Lists the worker processes and their runs under way. A worker that died stays listed for an hour.",
  input: z.strictObject({}),
  output: z.object({ workers: z.array(worker) }),
  async run({ store, owner }) {
    const [workers, now] = await Promise.all([store.registry.workers(), store.serverTime()]);
    return { workers: workers.map((worker) => viewOf(worker, now, owner)) };
  },
});

function viewOf(worker: WorkerInfo, now: number, owner: string | undefined): WorkerView {
  const alive = isAlive(worker, now);
  const silent = alive && isSilent(worker, now);
  const state = !alive ? "dead" : silent ? "silent" : worker.stopping ? "stopping" : "ready";
  if (owner === undefined) return { ...worker, alive, state };
  const { running: _, runs, ...rest } = worker;
  return { ...rest, runs: runs.filter(({ task }) => task.startsWith(`${owner}/`)), alive, state };
}
