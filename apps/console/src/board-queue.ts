import { Job, Queue } from "bullmq";

/** Shown as the name of a job that is not JSON. */
const UNREADABLE = "(what is stored is not JSON)";

/** A queue that can be shown although one of its jobs, written by someone else, cannot be read. */
export class BoardQueue extends Queue {
  /** Of what cannot be read, enough to be seen, mended (its data) and removed. */
  override async getJob(id: string): Promise<Job | undefined> {
    try {
      return await super.getJob(id);
    } catch (error) {
      // Its message quotes what is stored.
      if (error instanceof SyntaxError) return new Job(this, UNREADABLE, {}, { timestamp: 0 }, id);
      throw error;
    }
  }
}
