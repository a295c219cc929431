import { CarillonError, calendarZone, DEFAULT_OWNER, taskSchema } from "@carillon/core";
import { localName, nearestRemedy } from "@carillon/core/internal";
import { at, validatePayload } from "@carillon/sdk/internal";
import { z } from "zod";
import { parseInput } from "../input.js";
import type { SetConfig, SetDefaults, SetFile } from "./define-config.js";
import { localOf } from "./refusals.js";

/** Checked with the tasks that they end in. */
const fields = (...more: string[]) => {
  const names = [...Object.keys(taskSchema.shape), "state", ...more].filter((name) => name !== "id");
  return z.strictObject(Object.fromEntries(names.map((name) => [name, z.unknown().optional()] as const)));
};
const defaultFields = fields("timezone");
const patchFields = fields("renamedFrom");
const environmentFields = z.strictObject({ defaults: z.unknown().optional(), tasks: z.unknown().optional() });

/**
 * Makes the input of `sets.plan` and `sets.apply` of a `carillon.config`: each task gets the defaults that it does not have, then what
 * its environment changes. Last wins: `defaults`, those of the environment, the task, the environment's patch of it.
 *
 * @param environment required if the file has environments
 * @throws `INVALID_OPTION`; `INVALID_PAYLOAD` by the schemas of `types`
 * @example
 * await sets.apply(await resolveConfig(billing, "staging"));
 */
export async function resolveConfig<Defaults extends SetDefaults>(
  file: SetFile<Defaults>,
  environment?: string,
): Promise<SetConfig> {
  const { defaults, environments, types = [], ...set } = file;
  // Other faults are found by the operation.
  if (!Array.isArray(set.tasks)) return set as unknown as SetConfig;
  const own = environmentOf(environments, environment);
  const common = [defaults, own.defaults].map((given, i) =>
    given === undefined ? {} : parseInput(defaultFields, given, `${i === 1 ? own.path : ""}defaults`),
  );
  const { timezone, ...base } = { ...common[0], ...common[1] } as SetDefaults;
  const patches = patchesOf(own.tasks, `${own.path}tasks`);
  const tasks: object[] = [];
  for (const [i, task] of (set.tasks as readonly object[]).entries()) {
    if (typeof task !== "object" || task === null) return set as unknown as SetConfig;
    const whole = { ...base, ...task } as Fields;
    const name = localName({ owner: String(whole.owner ?? DEFAULT_OWNER), id: String(whole.id) });
    const patch = patches.get(name) ?? {};
    patches.delete(name);
    if (patch === false) continue;
    const { schedule, ...one } = { ...whole, ...patch };
    const type = types.find(({ type }) => type === one.type);
    if (type)
      await validatePayload(type, one.payload === undefined ? {} : one.payload).catch((error: unknown) => {
        throw at(error, i);
      });
    tasks.push({ ...one, ...(schedule !== undefined && { schedule: inZone(schedule, timezone) }) });
  }
  const [unknown] = patches.keys();
  if (unknown !== undefined)
    throw fault(`${own.path}tasks`, `the file has no task ${unknown}.`, "Correct the name, or remove it.");
  return { ...set, tasks } as unknown as SetConfig;
}

type Fields = Record<string, unknown>;

function environmentOf(environments: unknown, name: string | undefined) {
  const known = typeof environments === "object" && environments !== null ? Object.keys(environments) : [];
  if (name === undefined && known.length > 0)
    throw fault("environment", "missing.", `Give one of ${known.join(", ")}: --env NAME.`);
  if (name === undefined) return { path: "" };
  if (!known.includes(name))
    throw fault("environment", `the file has no environment ${name}.`, nearestRemedy(name, known));
  const path = `environments.${name}`;
  const found = parseInput(environmentFields, (environments as Fields)[name], path);
  return { ...found, path: `${path}.` };
}

function patchesOf(given: unknown = {}, path: string): Map<string, Fields | false> {
  if (typeof given !== "object" || given === null) throw fault(path, "not an object.", "Give patches by id.");
  return new Map(
    Object.entries(given).map(([id, patch]) => [
      localOf(id),
      patch === false ? patch : parseInput(patchFields, patch, `${path}.${id}`),
    ]),
  );
}

/** Gives a zone to cron and calendar expressions that have none. */
function inZone(schedule: unknown, timezone: string | undefined): unknown {
  if (timezone === undefined || typeof schedule !== "object" || schedule === null) return schedule;
  const { any, cron, calendar, timezone: own } = schedule as Fields;
  if (Array.isArray(any)) return { ...schedule, any: any.map((one) => inZone(one, timezone)) };
  const free = cron !== undefined || (calendar !== undefined && calendarZone(String(calendar)) === undefined);
  return free && own === undefined ? { ...schedule, timezone } : schedule;
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
