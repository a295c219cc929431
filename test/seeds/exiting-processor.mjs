// For BullMQ's sandbox: a process of its own, which task t7 ends.
export default async function processor(job) {
  if (job.data.occurrence.task === "t7") process.exit(1);
  return { pid: process.pid };
}
