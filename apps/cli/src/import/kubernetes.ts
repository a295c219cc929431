import { fieldTable, type Imported, intervalOf, Notes, readFields, settle } from "@carillon/ops/internal";
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
  readonly template?: {
    readonly spec?: {
      readonly containers?: readonly Container[];
    };
  };
}

interface Container {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

const ENV = fieldTable(`
  kept: name value
  dropped: valueFrom -- it is not in the payload.`);
const CONTAINER = fieldTable(
  `
  kept: image command args
  dropped: envFrom -- it is not in the payload.
  record: name terminationMessagePath terminationMessagePolicy imagePullPolicy
  dropped: workingDir ports resources volumeMounts volumeDevices securityContext resizePolicy -- the worker has its own.
  dropped: livenessProbe readinessProbe startupProbe lifecycle stdin stdinOnce tty -- the worker has its own.
  dropped: restartPolicy restartPolicyRules -- the worker has its own.`,
  { env: ENV },
);
const POD = fieldTable(
  `
  record: restartPolicy dnsPolicy schedulerName terminationGracePeriodSeconds enableServiceLinks
  dropped: initContainers ephemeralContainers volumes activeDeadlineSeconds nodeSelector nodeName -- the worker has its own.
  dropped: serviceAccount serviceAccountName automountServiceAccountToken imagePullSecrets -- the worker has its own.
  dropped: hostNetwork hostPID hostIPC hostUsers hostname hostnameOverride subdomain hostAliases -- the worker has its own.
  dropped: shareProcessNamespace securityContext affinity tolerations topologySpreadConstraints -- the worker has its own.
  dropped: priorityClassName priority preemptionPolicy dnsConfig readinessGates runtimeClassName -- the worker has its own.
  dropped: overhead setHostnameAsFQDN os schedulingGates resourceClaims resources workloadRef -- the worker has its own.`,
  { containers: CONTAINER },
);
const JOB = fieldTable(
  `
  kept: backoffLimit activeDeadlineSeconds
  dropped: completions parallelism completionMode = 1 NonIndexed -- see docs/policies/fan-out.md.
  dropped: backoffLimitPerIndex maxFailedIndexes successPolicy -- see docs/policies/fan-out.md.
  dropped: podFailurePolicy -- throw a PermanentError if no retry helps.
  dropped: ttlSecondsAfterFinished -- see docs/policies/runs.md.
  refused: suspend = false -- its jobs never start by themselves.
  record: selector manualSelector podReplacementPolicy managedBy`,
  { template: fieldTable("record: metadata", { spec: POD }) },
);
/** A CronJob of batch/v1, as a manifest or `kubectl get` has it. */
const FIELDS = fieldTable("record: apiVersion kind status", {
  metadata: fieldTable(`
    kept: name namespace creationTimestamp
    dropped: labels -- see tags.
    record: annotations uid resourceVersion generation managedFields selfLink ownerReferences
    record: finalizers generateName deletionTimestamp deletionGracePeriodSeconds`),
  spec: fieldTable(
    `
    kept: schedule timeZone startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit
    kept: suspend = true false
    kept: concurrencyPolicy = Allow Forbid Replace`,
    { jobTemplate: fieldTable("record: metadata", { spec: JOB }) },
  ),
});

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

function convert(manifest: Manifest, options: SourceOptions): Imported {
  const { metadata = {}, spec = {} } = manifest;
  const notes = new Notes();
  readFields(manifest, FIELDS, notes);
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
  const [, named, given = ""] = /^(?:(?:CRON_)?TZ=(\S+)\s+)?(.*)$/s.exec(schedule.trim()) ?? [];
  const expression = NAMED[given] ?? given;
  const [, every] = /^@every\s+(\S+)$/.exec(expression) ?? [];
  if (every !== undefined) {
    if (!created)
      notes.add(
        "ORIGIN",
        "@every counts from the CronJob's creation, which the manifest does not have; here from the epoch.",
      );
    return intervalOf(lengthOf(every), created ? Date.parse(created) : 0);
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

const NAMED: Readonly<Record<string, string>> = {
  ...{ "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0" },
  ...{ "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *" },
};
const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Go's duration in ms, cut to whole seconds as robfig/cron does. */
function lengthOf(duration: string): number {
  const parts = [...duration.matchAll(/([\d.]+)(h|ms|m|s|[nuµ]s)/g)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit!] ?? 0), 0);
  return Math.max(1_000, Math.floor(ms / 1_000) * 1_000);
}

function payloadOf({ template }: JobSpec, notes: Notes): Task["payload"] {
  const { containers = [] } = template?.spec ?? {};
  if (containers.length > 1) notes.add("DROPPED", "Only its first container is in the payload.");
  const [{ image, command, args, env = [] } = {}] = containers;
  const given = env.filter(({ value }) => value !== undefined);
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
