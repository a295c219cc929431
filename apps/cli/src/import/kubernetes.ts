import { type Imported, Notes, settle } from "@carillon/ops/internal";
import { parseAllDocuments } from "yaml";
import { misuse } from "../failure.js";
import type { Source, SourceOptions, Task } from "./source.js";

interface Manifest {
  readonly kind?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly creationTimestamp?: string;
  };
  readonly items?: readonly Manifest[];
  readonly spec?: CronJobSpec;
}

interface CronJobSpec {
  readonly schedule?: string;
  readonly timeZone?: string | null;
  readonly suspend?: boolean;
  readonly concurrencyPolicy?: "Allow" | "Forbid" | "Replace";
  readonly startingDeadlineSeconds?: number;
  readonly successfulJobsHistoryLimit?: number;
  readonly failedJobsHistoryLimit?: number;
  readonly jobTemplate?: { readonly spec?: JobSpec };
}

interface JobSpec {
  readonly backoffLimit?: number;
  readonly activeDeadlineSeconds?: number;
  readonly completions?: number;
  readonly parallelism?: number;
  readonly template?: {
    readonly spec?: {
      readonly containers?: readonly Container[];
      readonly initContainers?: readonly unknown[];
    };
  };
}

interface Container {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly envFrom?: readonly unknown[];
}

/** Forbid remembers the time that it passed over, and starts its job when the one in its way has ended. */
const OVERLAPS = { Allow: "allow", Forbid: "queue-one", Replace: "cancel-running" } as const;

/** CronJobs among the manifests of a YAML file, or of `kubectl get cronjobs -o yaml`, as tasks of the type `container`. */
export const kubernetes: Source = (text, options) => {
  const documents = parseAllDocuments(text) as { errors: { message: string }[]; toJS(): unknown }[];
  const broken = documents.flatMap(({ errors }) => errors)[0];
  if (broken)
    throw misuse(
      "FILE",
      `not YAML: ${broken.message.split("\n")[0]}`,
      "Give manifests; render templates first.",
    );
  const all = documents
    .map((one) => one.toJS() as Manifest | null)
    .flatMap((one) => one?.items ?? (one ? [one] : []));
  return settle(all.filter(({ kind }) => kind === "CronJob").map((one) => convert(one, options)));
};

function convert({ metadata = {}, spec = {} }: Manifest, options: SourceOptions): Imported {
  const notes = new Notes();
  const from = `${metadata.namespace ?? "default"}/${metadata.name}`;
  notes.add("CONTAINER", "A handler takes the place of its container: write the type, or use http.request.");
  const { concurrencyPolicy = "Allow", startingDeadlineSeconds, suspend, jobTemplate } = spec;
  const job = jobTemplate?.spec ?? {};
  const task: Task = {
    id: notes.name("id", metadata.name ?? ""),
    type: "container",
    queue: options.queue,
    schedule: scheduleOf(spec, metadata.creationTimestamp, notes, options),
    payload: payloadOf(job, notes),
    overlap: OVERLAPS[concurrencyPolicy],
    ...(startingDeadlineSeconds !== undefined && {
      catchUpLimits: { window: `${Math.max(1, startingDeadlineSeconds)}s` },
    }),
    ...policiesOf(spec, job, notes),
    ...(suspend && { state: "paused" }),
  };
  return { from, task, notes: notes.list };
}

/** Times of robfig/cron, by which Kubernetes computes. */
function scheduleOf(
  { schedule = "", timeZone }: CronJobSpec,
  created: string | undefined,
  notes: Notes,
  options: SourceOptions,
): Task["schedule"] {
  const [, named, expression = ""] = /^(?:(?:CRON_)?TZ=(\S+)\s+)?(.*)$/s.exec(schedule.trim()) ?? [];
  const [, every] = /^@every\s+(\S+)$/.exec(expression) ?? [];
  if (every !== undefined) {
    if (!created)
      notes.add(
        "ORIGIN",
        "@every counts from the CronJob's creation, which the manifest does not have; here from the epoch.",
      );
    return { every, ...(created && { origin: created }) };
  }
  const timezone = notes.zone(timeZone ?? named, options);
  const fields = expression.split(/\s+/).map((field) => field.replace(/^\?/, "*"));
  // Joined by "or" unless one is `*`; cronie joins also `*/2` by "and".
  const days = (field = "", range: string) => field.replace(/^\*(?=\/(?!1$))/, range);
  if (fields.length === 5) [fields[2], fields[4]] = [days(fields[2], "1-31"), days(fields[4], "0-6")];
  // A fixed hour: no time in the gap, and each pass of the hour that comes twice.
  const fixed = fields.length === 5 && timezone !== "UTC";
  return {
    cron: fields.join(" "),
    timezone,
    ...(fixed && { dst: { gap: "skip", overlap: "both" } as const }),
  };
}

function payloadOf({ template, completions = 1, parallelism = 1 }: JobSpec, notes: Notes): Task["payload"] {
  const { containers = [], initContainers = [] } = template?.spec ?? {};
  if (containers.length + initContainers.length > 1)
    notes.add("DROPPED", "Only its first container is in the payload.");
  if (Math.max(completions, parallelism) > 1)
    notes.add(
      "DROPPED",
      `completions ${completions} and parallelism ${parallelism}: see docs/policies/fan-out.md.`,
    );
  const [{ image, command, args, env = [], envFrom } = {}] = containers;
  const given = env.filter(({ value }) => value !== undefined);
  if (envFrom || given.length < env.length)
    notes.add("DROPPED", "Environment from secrets, config maps and fields is not in the payload.");
  return {
    image,
    command,
    args,
    ...(given.length > 0 && { env: Object.fromEntries(given.map(({ name, value }) => [name, value])) }),
  };
}

function policiesOf(
  spec: CronJobSpec,
  { backoffLimit = 6, activeDeadlineSeconds }: JobSpec,
  notes: Notes,
): Partial<Task> {
  const { successfulJobsHistoryLimit: successes, failedJobsHistoryLimit: failures } = spec;
  if (activeDeadlineSeconds !== undefined && backoffLimit > 0)
    notes.add("TIME_LIMIT", "activeDeadlineSeconds bounds all attempts together; timeLimit bounds each.");
  return {
    ...(backoffLimit > 0 && {
      retry: { attempts: Math.min(backoffLimit + 1, 100), backoff: "exponential", delay: "10s", max: "6m" },
    }),
    ...(activeDeadlineSeconds !== undefined && { timeLimit: `${activeDeadlineSeconds}s` }),
    ...((successes !== undefined || failures !== undefined) && {
      retention: {
        ...(successes !== undefined && { successes }),
        ...(failures !== undefined && { failures }),
      },
    }),
  };
}
