import { type Duration, isCarillonError } from "@carillon/core";
import { invalid } from "@carillon/core/internal";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import type { Context } from "../context.js";
import { PermanentError } from "../permanent-error.js";
import { type Answer, type Delivery, PURPOSE } from "../serve/delivery.js";
import { assertTaskType, defineTask, type TaskContract, type TaskType } from "../task-type.js";
import { HttpError } from "./errors.js";
import { MAX_RESPONSE_BYTES } from "./limits.js";
import { checkedSigned, type HttpRequestOptions } from "./options.js";
import { httpUrl } from "./payload.js";
import { signWith } from "./signature.js";
import { SIGNATURE_HEADER } from "./signature-parts.js";
import { matchesStatus, PERMANENT_STATUSES } from "./status.js";
import { send, unexpected } from "./task.js";

export interface DeliverOptions extends Omit<HttpRequestOptions, "queue" | "maxResponseBytes"> {
  /** Address at which `serve` of `@carillon/sdk/serve` answers. Need not be public: it is your own, not a task's. */
  url: string;
  /** For the whole request; a task's time limit also ends it. Milliseconds, or `10s`; default `5m`, at most `1h`. */
  timeout?: Duration | undefined;
}

/** Without 401: while keys are rotated, the app may not know the new one yet. */
const PERMANENT = PERMANENT_STATUSES.filter((status) => status !== 401);

/** The schema of a payload that is checked here, and parsed by its receiver. */
type Stored<Schema extends StandardSchemaV1> = StandardSchemaV1<
  StandardSchemaV1.InferInput<Schema>,
  StandardSchemaV1.InferInput<Schema>
>;

/**
 * Lets a worker post the runs of a task type to an app that has its handler: {@link serve}. Signed, retried and recorded like other
 * runs, with the time limit, the idempotency key and the fence; what the handler returns, throws and logs is recorded as if it ran here.
 *
 * @example
 * const signingKey = process.env.CARILLON_SIGNING_KEY!;
 * const worker = new Worker({ connection, types: [deliver(report, { url: "https://app.example.com/api/carillon", signingKey })] });
 * @throws `INVALID_OPTION`
 */
export function deliver<Schema extends StandardSchemaV1>(
  contract: TaskContract<Schema>,
  { url, ...options }: DeliverOptions,
): TaskType<Stored<Schema>> {
  assertTaskType(contract, "contract");
  const target = checkedUrl(url);
  const settings = checkedSigned({
    timeout: "5m",
    maxResponseBytes: MAX_RESPONSE_BYTES,
    ...options,
    permanentStatuses: options.permanentStatuses ?? PERMANENT,
    allow: [target.host, ...(options.allow ?? [])],
  });

  async function post(payload: unknown, context: Context): Promise<unknown> {
    const { occurrence, fence, attempt, checkpoint } = context;
    const timeLeft = Math.ceil(Math.min(settings.timeout, context.timeLeft()));
    const delivery: Delivery = {
      type: contract.type,
      payload,
      occurrence,
      fence,
      attempt,
      checkpoint,
      timeLeft,
    };
    const body = JSON.stringify(delivery);
    const headers = {
      "Content-Type": "application/json",
      [SIGNATURE_HEADER]: signWith(PURPOSE, body, settings.keysFor(occurrence, target)),
    };
    const request = { method: "POST", url, headers, body, expectStatus: "2xx" } as const;
    const response = await send(request, context, { ...settings, keysFor: () => [] });
    const { status } = response;
    const answer = answerIn(response.body);
    const isWell = matchesStatus("2xx", status);
    if (!answer || isWell === (answer.error !== undefined)) {
      throw isWell ? notServed(target.host, status) : unexpected(target.host, response, settings);
    }
    for (const line of answer.log) context.log(line);
    if (answer.checkpoint !== undefined) await context.saveCheckpoint(answer.checkpoint);
    if (answer.nextAt !== undefined) context.runNextAt(answer.nextAt);
    if (answer.error) throw thrown(answer.error, matchesStatus(settings.permanentStatuses, status));
    if (answer.outcome === "partial") return context.partial(answer.result);
    return answer.outcome ? context.nothingToDo(answer.result) : answer.result;
  }

  return defineTask(contract.type, {
    queue: contract.queue,
    payload: asStored(contract.payload),
    handler: post as TaskType<Stored<Schema>>["handler"],
  });
}

/** @throws `INVALID_OPTION` */
function checkedUrl(url: string): URL {
  try {
    return httpUrl(url);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const { message, remedy = "Give the address where serve answers." } = error;
    throw invalid("url", message, remedy);
  }
}

function asStored<Schema extends StandardSchemaV1>(schema: Schema): Stored<Schema> {
  const { vendor, validate } = schema["~standard"];
  return {
    "~standard": {
      version: 1,
      vendor,
      validate: async (value) => {
        const checked = await validate(value);
        return checked.issues ? checked : { value: value as StandardSchemaV1.InferInput<Schema> };
      },
    },
  };
}

/** Answer of `serve`, from an app that need not be one of ours. */
const answerSchema = z.object({
  outcome: z.enum(["partial", "nothing-to-do"]).optional(),
  result: z.json().optional(),
  error: z
    .object({
      name: z.string(),
      message: z.string(),
      stack: z.string().optional(),
      permanent: z.boolean().optional(),
    })
    .optional(),
  log: z.array(z.string()),
  checkpoint: z.json().optional(),
  nextAt: z.number().optional(),
}) satisfies z.ZodType<Answer>;

function answerIn(text: string): Answer | undefined {
  try {
    return answerSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function notServed(host: string, status: number): HttpError {
  const what = `${host} answered ${status}, but not as serve does. Give the address of its route as url.`;
  return new HttpError("HTTP_STATUS", what, status);
}

function thrown(error: NonNullable<Answer["error"]>, permanent: boolean): Error {
  const { name, message, stack = `${name}: ${message}` } = error;
  const Class = permanent || error.permanent ? PermanentError : Error;
  return Object.assign(new Class(message), { name, stack });
}
