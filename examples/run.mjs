import { Scheduler } from "@carillon/scheduler";
import { Client, readEnvironment, Worker } from "@carillon/sdk";

const QUIET = { debug() {}, info() {}, warn: console.warn, error: console.error };

/**
 * Runs an example: starts a worker and a node, lets `work` put and enqueue, prints the end of the first run, and stops.
 *
 * @param {import("@carillon/sdk").AnyTaskType[]} types
 * @param {(client: Client) => Promise<unknown>} work
 */
export async function run(types, work) {
  const settings = { ...readEnvironment(), logger: QUIET };
  const client = new Client(readEnvironment());
  const worker = new Worker({ ...settings, types });
  const node = new Scheduler(settings);
  const end = new Promise((resolve) => worker.once("settled", resolve));

  await Promise.all([worker.start(), node.start()]);
  await work(client);
  const { task, outcome } = await end;
  console.log(`${task}: ${outcome}`);

  // The worker stops first, because it needs the others until then.
  await worker.stop();
  await node.stop();
  await client.close();
}
