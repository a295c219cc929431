/**
 * A task for a plain BullMQ worker: the task type is the name of the job.
 *
 * @param {import("@carillon/sdk").Client} client
 */
export async function putDigest(client) {
  await client.put({
    id: "digest",
    type: "send-digest",
    queue: "mail",
    schedule: { cron: "0 7 * * 1", timezone: "Europe/Berlin" },
    payload: { list: "weekly" },
    retry: { attempts: 3, delay: "10s" }, // BullMQ does these
  });
}

/**
 * Runs in a BullMQ worker.
 *
 * @param {{ name: string, data: import("@carillon/sdk").JobData }} job
 */
export async function processMail({ name, data: { payload, occurrence } }) {
  console.log(`${name} ${JSON.stringify(payload)}, with the idempotency key ${occurrence.key}`);
  return { sent: true };
}
