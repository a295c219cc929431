import type { Schedule } from "@carillon/core";
import { parseLocalName } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import { joinLongValues } from "./long-values.js";
import * as read from "./stored-fields.js";

/** The facts that decide the times of a scheduled task. */
export interface Timing {
  readonly owner: string;
  readonly id: string;
  readonly tags: readonly string[];
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
  link: Link,
  keys: QueueKeys,
  locals: readonly string[],
  known: Map<string, Schedule>,
): Promise<Timing[]> {
  const hashes = await readFields(link, keys, locals, FIELDS);
  const long = locals.filter((_, i) => hashes[i]?.has("schedule:1"));
  const rest = await readFields(link, keys, long, MORE);
  const parts = new Map(long.map((local, i) => [local, rest[i]]));
  return locals.flatMap((local, i) => {
    const hash = new Map([...(hashes[i] ?? []), ...(parts.get(local) ?? [])]);
    if (hash.get("state") !== "scheduled") return [];
    if (hash.has("schedule:1")) joinLongValues(hash);
    const scheduleJson = hash.get("schedule") ?? "";
    try {
      const schedule = known.get(scheduleJson) ?? read.schedule(scheduleJson);
      known.set(scheduleJson, schedule);
      const nominal = hash.get("nominal");
      return [
        {
          ...parseLocalName(local),
          tags: hash.get("tags")?.split(",") ?? [],
          schedule,
          scheduleJson,
          nominal: nominal === undefined ? undefined : Number(nominal),
          fired: Number(hash.get("fired") ?? 0),
        },
      ];
    } catch {
      return [];
    }
  });
}

export async function readTags(link: Link, keys: QueueKeys, locals: readonly string[]): Promise<string[][]> {
  const hashes = await readFields(link, keys, locals, ["tags"]);
  return hashes.map((hash) => hash.get("tags")?.split(",") ?? []);
}

/** Some fields of tasks; none of one whose hash is corrupt. */
async function readFields(
  link: Link,
  keys: QueueKeys,
  locals: readonly string[],
  fields: readonly string[],
): Promise<Map<string, string>[]> {
  if (locals.length === 0) return [];
  const replies = await link.ask(async (client) => {
    const pipeline = client.pipeline();
    for (const local of locals) pipeline.hmget(keys.task(local), ...fields);
    return (await pipeline.exec()) ?? [];
  });
  return replies.map(([error, values]) => {
    const hash = new Map<string, string>();
    if (error) return hash;
    for (const [n, value] of (values as (string | null)[]).entries())
      if (value !== null) hash.set(fields[n] as string, value);
    return hash;
  });
}
