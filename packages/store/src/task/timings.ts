import type { Schedule } from "@carillon/core";
import { parseLocalName } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import { readFields } from "../redis/hashes.js";
import type { Scripts } from "../script/scripts.js";
import * as stored from "./stored-fields.js";

/** The facts that decide the times of a scheduled task. */
export interface Timing {
  readonly owner: string;
  readonly id: string;
  readonly tags: readonly string[];
  /** One object for all tasks of one reading that have the same text. */
  readonly schedule: Schedule;
  readonly scheduleJson: string;
  /** The next nominal time, UTC ms. */
  readonly nominal: number | undefined;
  /** Occurrences of the schedule that were enqueued. */
  readonly fired: number;
}

const FIELDS = ["state", "nominal", "fired", "tags", "schedule", "schedule:1"];
/** Further parts of a long schedule, which few tasks have. */
const MORE = ["schedule:2", "schedule:3", "schedule:4", "schedule:5"];

/**
 * Reads the plans of the scheduled tasks among these names. Leaves out corrupt plans.
 * @param known schedules by their text
 */
export async function readTimings(
  scripts: Scripts,
  keys: QueueKeys,
  locals: readonly string[],
  known: Map<string, Schedule>,
): Promise<Timing[]> {
  const read = await readFields(scripts, locals.map(keys.task), FIELDS);
  const long = locals.filter((_, i) => read[i]?.[5]);
  const rest = await readFields(scripts, long.map(keys.task), MORE);
  const parts = new Map(long.map((local, i) => [local, rest[i]]));
  const timings: Timing[] = [];
  for (const [i, local] of locals.entries()) {
    const [state, nominal, fired, tags, first = "", second] = read[i] ?? [];
    if (state !== "scheduled") continue;
    const scheduleJson = second ? [first, second, ...(parts.get(local) ?? [])].join("") : first;
    try {
      let schedule = known.get(scheduleJson);
      if (schedule === undefined) {
        schedule = stored.schedule(scheduleJson);
        known.set(scheduleJson, schedule);
      }
      const { owner, id } = parseLocalName(local);
      // Names each field: V8 makes an object that begins with a spread a slow dictionary, which took most of the time here.
      timings.push({
        owner,
        id,
        tags: tags ? tags.split(",") : [],
        schedule,
        scheduleJson,
        nominal: nominal ? Number(nominal) : undefined,
        fired: Number(fired),
      });
    } catch {
      // Corrupt, or of a newer version.
    }
  }
  return timings;
}

export async function readTags(
  scripts: Scripts,
  keys: QueueKeys,
  locals: readonly string[],
): Promise<string[][]> {
  const read = await readFields(scripts, locals.map(keys.task), ["tags"]);
  return read.map(([tags]) => (tags ? tags.split(",") : []));
}
