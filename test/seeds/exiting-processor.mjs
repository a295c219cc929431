// A processor for BullMQ's sandbox, whose process ends at task t7.
export default async function processor(job) {
  if (job.data.occurrence.task === "t7") process.exit(1);
  return { pid: process.pid };
}
