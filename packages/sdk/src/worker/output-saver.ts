import { type Logger, redisError, type Store } from "@carillon/store";
import type { Active, ActiveJobs } from "./active.js";

/** Stores the output of attempts at runs and items with their runs. Never rejects: a run must not fail because of its output. */
export class OutputSaver {
  constructor(
    private readonly store: Store,
    private readonly logger: Logger,
  ) {}

  /** Saves one at a time: a resend after a lost reply would overwrite a later save. */
  async save(active: Active): Promise<void> {
    const before = active.saving;
    const saved = before ? before.then(() => this.#save(active)) : this.#save(active);
    active.saving = saved;
    await saved;
    if (active.saving === saved) active.saving = undefined;
  }

  async #save({ queue, run, attempt, output, item }: Active): Promise<void> {
    const kept = output.take();
    if (!kept) return;
    try {
      await this.store.runs.saveOutput(queue, run, item ?? attempt, kept.text, kept.cut);
    } catch (error) {
      output.putBack();
      this.logger.warn({ queue, run, code: redisError(error).code }, "output could not be saved");
    }
  }

  /** An attempt that continues on another worker keeps its earlier output. */
  async goOn({ queue, run, attempt, output }: Active): Promise<void> {
    try {
      const saved = await this.store.runs.output(queue, run);
      output.goOnFrom(saved.find((one) => one.attempt === attempt)?.text ?? "");
    } catch (error) {
      this.logger.warn({ queue, run, code: redisError(error).code }, "earlier output could not be read");
    }
  }

  async saveAll(active: ActiveJobs): Promise<void> {
    await Promise.all([...active].map((one) => this.save(one)));
  }
}
