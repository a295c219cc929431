import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ControllerHandlerReturnType } from "@bull-board/api/typings/app";
import { CarillonError, type ErrorCode } from "@carillon/sdk";
import { ErrorCode as BullCode } from "bullmq";

interface Refusal {
  readonly code: ErrorCode;
  readonly field?: string;
  readonly remedy: string;
}

/** BullMQ's refusals because of the state of a job. Its other numbers only concern workers and schedulers. */
const BY_NUMBER: ReadonlyMap<unknown, Refusal> = new Map([
  [BullCode.JobNotExist, { code: "RUN_NOT_FOUND", remedy: "It was removed: load the page again." }],
  [
    BullCode.JobNotInState,
    {
      code: "CONFLICT",
      remedy:
        "Load the page again to see its state: only a delayed job can be promoted, only one that failed or completed retried.",
    },
  ],
  [
    BullCode.ParentJobNotExist,
    {
      code: "CONFLICT",
      field: "options.parent",
      remedy: "Name an existing job, or leave it out.",
    },
  ],
  [
    BullCode.ParentJobCannotBeReplaced,
    { code: "CONFLICT", field: "options.parent", remedy: "Leave it out, or give another jobId." },
  ],
  [BullCode.JobBelongsToJobScheduler, { code: "CONFLICT", remedy: "Remove its scheduler instead." }],
]);

/** BullMQ's refusals without a number: for locked jobs, and for options. */
const BY_TEXT: ReadonlyArray<readonly [RegExp, Refusal]> = [
  [
    /^Job .+ could not be removed because it is locked by another worker$/s,
    { code: "CONFLICT", remedy: "Wait until it is over, or cancel its run; then remove it." },
  ],
  [
    /^(The following options cannot be used together|Priority should|Deduplication |Debounce option|Jitter should|Custom Id|JobId cannot|The size of job )/,
    { code: "INVALID_OPTION", field: "options", remedy: "Give options that BullMQ accepts." },
  ],
];

/** BullMQ's refusal as a coded error with a remedy. Undefined for other errors. */
export function refusedByBull(error: unknown): CarillonError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { message, code } = error as Error & { code?: unknown };
  const known = BY_NUMBER.get(code) ?? BY_TEXT.find(([text]) => text.test(message))?.[1];
  if (known === undefined) return undefined;
  const { code: ours, ...options } = known;
  return new CarillonError(ours, sentence(message), { ...options, cause: error });
}

/** Removes the name of BullMQ's command at the end of a numbered error's message. */
function sentence(message: string): string {
  return message.replace(/\. \w+$/, "").replace(/\.?$/, ".");
}

/** Bull Board's own refusals because of the current state, and remedies that its texts lack. */
const BY_KEY: ReadonlyMap<string, { readonly code: ErrorCode; readonly remedy?: string }> = new Map([
  ["ERRORS.JOB_NOT_FOUND", { code: "RUN_NOT_FOUND", remedy: "It was removed: load the page again." }],
  ["ERRORS.JOB_SCHEDULER_NOT_FOUND", { code: "TASK_NOT_FOUND" }],
  [
    "ERRORS.JOB_NOT_RETRIABLE",
    { code: "CONFLICT", remedy: "Only a job that failed or completed can be retried." },
  ],
  ["ERRORS.JOB_IS_ACTIVE", { code: "CONFLICT", remedy: "Wait for that, or cancel its run." }],
  ["ERRORS.JOB_NOT_DELAYED", { code: "CONFLICT" }],
  ["ERRORS.JOB_HAS_NO_UNPROCESSED_CHILDREN", { code: "CONFLICT" }],
  ["ERRORS.JOB_BELONGS_TO_JOB_SCHEDULER", { code: "CONFLICT" }],
  ["ERRORS.QUEUE_NOT_PAUSED", { code: "CONFLICT" }],
  ["ERRORS.QUEUE_HAS_ACTIVE_JOBS", { code: "CONFLICT" }],
]);

/** A key of Bull Board's texts, and the values of its placeholders. */
interface Text {
  readonly key: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** An answer of Bull Board. A refusal that has only a key of its page gets a code and a text. */
export function answered(result: ControllerHandlerReturnType): ControllerHandlerReturnType {
  const body = result.body as { error?: Text; message?: Text | string };
  const { error, message } = body;
  if (typeof error?.key !== "string") return result;
  const given = result.status ?? 500;
  const { code, ...options } = BY_KEY.get(error.key) ?? { code: given < 500 ? "INVALID_OPTION" : "INTERNAL" };
  const said = new CarillonError(
    code,
    sentence(textOf(typeof message === "object" ? message : error)),
    options,
  );
  const status = code === "CONFLICT" ? 409 : given;
  return { status, body: { ...body, error: { ...error, ...said.toJSON() } } } as ControllerHandlerReturnType;
}

function textOf({ key, options = {} }: Text): string {
  const text = TEXTS[key.replace(/^ERRORS\./, "")] ?? key;
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(options[name] ?? ""));
}

/** The English texts of its page. */
const TEXTS = readTexts();

function readTexts(): Readonly<Record<string, string>> {
  const ui = dirname(createRequire(import.meta.url).resolve("@bull-board/ui/package.json"));
  const file = join(ui, "dist/static/locales/en-US/messages.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { ERRORS: Record<string, string> }).ERRORS;
}
