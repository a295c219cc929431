import {
  CarillonError,
  Client,
  isCarillonError,
  lintSchedule,
  type Schedule,
  type TaskInput,
  taskSchema,
} from "@carillon/sdk";

/** A schedule that passed, and what `H` and jitter are derived from. */
interface Checked {
  readonly schedule: Schedule;
  readonly seed: string;
}

interface Question {
  readonly task?: unknown;
  readonly schedule?: unknown;
  /** Beside a schedule: the id of the task that it is for. */
  readonly id?: string | undefined;
}

/** A task around a schedule that is asked about alone. */
const NAMED = { id: "none", type: "none", queue: "none" };

/** Puts without storing: the same checks, with the same errors. */
export class Checker {
  /** It knows no task type, so its puts get as far as the type, which is asked for last. */
  readonly #client: Client;

  constructor({ store }: Client) {
    this.#client = new Client({ store, types: [] });
  }

  /** @throws as `Client.put`; `INVALID_OPTION` unless exactly one of task and schedule is given */
  async check({ task, schedule, id }: Question): Promise<Checked> {
    if (task === undefined && schedule === undefined)
      throw refused("task", "missing.", "Give a task or a schedule.");
    if (task === undefined)
      return this.#check({ ...NAMED, ...(id === undefined ? {} : { id }), schedule }, id ?? "");
    const beside = schedule !== undefined ? "schedule" : id !== undefined ? "id" : undefined;
    if (beside !== undefined) throw refused(beside, "given beside task.", "Leave one of the two out.");
    return this.#check(task);
  }

  async #check(task: unknown, seed?: string): Promise<Checked> {
    try {
      await this.#client.put(task as TaskInput);
    } catch (error) {
      if (!isCarillonError(error, "UNKNOWN_TASK_TYPE")) throw error;
    }
    const { id, schedule } = taskSchema.parse(task);
    if (!neverFires(schedule)) return { schedule, seed: seed ?? id };
    throw new CarillonError("NEVER_FIRES", "no such date ever exists.", {
      field: "schedule",
      remedy: "Check day and month; `carillon next` shows what an expression means.",
    });
  }
}

/** Of the whole schedule; a warning about a member of a union begins with its place. */
function neverFires(schedule: Schedule): boolean {
  return lintSchedule(schedule).some(
    ({ code, message }) => code === "NEVER_FIRES" && !/^any\[/.test(message),
  );
}

function refused(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
