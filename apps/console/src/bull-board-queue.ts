import { Job, Queue } from "bullmq";

/** Shown as the name of a job that is not JSON. */
const UNREADABLE = "(the stored job is not JSON)";

/** A queue that can be shown even if one of its jobs is corrupt. */
export class BoardQueue extends Queue {
  /** For a corrupt job, returns enough to show it, repair its data and remove it. */
  override async getJob(id: string): Promise<Job | undefined> {
    try {
      return await super.getJob(id);
    } catch (error) {
      // The error's message quotes the stored text.
      if (error instanceof SyntaxError) return new Job(this, UNREADABLE, {}, { timestamp: 0 }, id);
      throw error;
    }
  }
}
