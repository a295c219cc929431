import { CarillonError, type Json } from "@carillon/core";
import { assertOptions, invalid, roundedInstant } from "@carillon/core/internal";
import type { Context } from "../context.js";
import { type Keys, keyList, parseSignature, SIGNATURE_HEADER, TOLERANCE } from "../http/signature-parts.js";
import { assertList } from "../options.js";
import { isPermanentError, PermanentError } from "../permanent-error.js";
import { assertHasJson } from "../result.js";
import { assertWorkable, type TaskType, typesByName, validatePayload } from "../task-type.js";
import { Ending } from "../worker/ending.js";
import { cutJson, LARGEST_CHECKPOINT, lineOf, plainJson } from "../worker/json.js";
import { type Answer, type Delivery, type DeliveryError, PURPOSE } from "./delivery.js";

export interface ServeOptions {
  /** Task types that are delivered here. */
  // biome-ignore lint/suspicious/noExplicitAny: as in a worker's list
  types: readonly TaskType<any>[];
  /**
   * The key of `deliver`, or several while keys are rotated, or a function that returns them. Without one each request is refused,
   * and an app can still be built.
   */
  signingKey: Keys | undefined | (() => Keys | undefined);
  /**
   * Resolves with whether an id comes for the first time within the given milliseconds. Default: a memory of this process, so with several
   * instances give one that they share, such as `SET id 1 NX PX ms` of Redis.
   */
  once?: ((id: string, ms: number) => boolean | Promise<boolean>) | undefined;
}

/** Limit of a request's body, in bytes: a payload, a checkpoint and some room. */
const LARGEST_BODY = 512 * 1024;
/** Limits of an answer's parts, in characters. The sender reads 1 MiB. */
const [LARGEST_RESULT, LARGEST_LOG, LARGEST_TEXT] = [128 * 1024, 64 * 1024, 16 * 1024];
const UTF8 = new TextEncoder();

/**
 * A Web-standard handler of requests that runs the task types which a worker posts to it: see `deliver` of `@carillon/sdk/http`. A request must
 * be signed, of the last five minutes, and not seen before; its payload is parsed by the type's schema.
 *
 * @example
 * // app/api/carillon/route.ts of Next.js
 * export const POST = serve({ types: [report], signingKey: process.env.CARILLON_SIGNING_KEY });
 * @throws `INVALID_OPTION`
 */
export function serve(options: ServeOptions): (request: Request) => Promise<Response> {
  assertOptions(options, ["types", "signingKey", "once"]);
  assertList(options.types, "types", "Give the task types that are delivered here.");
  for (const [i, type] of options.types.entries()) assertServable(type, `types[${i}]`);
  const types = typesByName(options.types);
  const { signingKey, once = memory() } = options;
  return async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405, headers: { Allow: "POST" } });
    try {
      const body = await read(request);
      const keys = keyList((typeof signingKey === "function" ? signingKey() : signingKey) ?? []);
      if (!(await isSigned(body, request.headers.get(SIGNATURE_HEADER), keys))) {
        const remedy = "Sign with the same key, on a clock that differs by less than 5 minutes.";
        return refusal(401, new CarillonError("UNAUTHORIZED", "no valid signature.", { remedy }));
      }
      const delivery = JSON.parse(new TextDecoder().decode(body)) as Delivery;
      const type = types.get(delivery.type);
      if (!type) {
        const known = [...types.keys()].join(", ");
        const what = `no handler for task type ${delivery.type}; here are ${known}.`;
        return refusal(404, new CarillonError("UNKNOWN_TASK_TYPE", what));
      }
      const payload = await validatePayload(type, delivery.payload);
      if (!(await once(`${delivery.occurrence.run} ${delivery.fence}`, 2 * TOLERANCE)))
        return refusal(409, new CarillonError("CONFLICT", "this attempt was delivered before."));
      return await run(type, payload, delivery, request.signal);
    } catch (error) {
      return refusal(
        error instanceof CarillonError && error.code !== "INVALID_OPTION" ? error.status : 500,
        error,
      );
    }
  };
}

/** @throws `INVALID_OPTION` */
function assertServable(type: TaskType, field: string): void {
  assertWorkable(type, field);
  if (typeof type.handler === "function") return;
  throw invalid(
    field,
    `task type ${type.type} generates items.`,
    "Give it to a worker: one request cannot do many jobs.",
  );
}

/** Ids of the last minutes. All are kept for the same time, so the first to come is the first to go. */
function memory(): NonNullable<ServeOptions["once"]> {
  const ends = new Map<string, number>();
  return (id, ms) => {
    const now = Date.now();
    for (const [old, end] of ends) {
      if (end > now) break;
      ends.delete(old);
    }
    if (ends.has(id)) return false;
    ends.set(id, now + ms);
    return true;
  };
}

/** The body's bytes. @throws `PAYLOAD_TOO_LARGE` */
async function read(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
    size += part.value.length;
    if (size > LARGEST_BODY) {
      await reader?.cancel();
      throw new CarillonError("PAYLOAD_TOO_LARGE", `more than ${LARGEST_BODY} bytes.`, { field: "body" });
    }
    chunks.push(part.value);
  }
  return joined(chunks, size);
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

async function isSigned(body: Uint8Array, header: string | null, keys: readonly string[]): Promise<boolean> {
  const signature = parseSignature(header);
  if (!signature) return false;
  const begin = UTF8.encode(`${PURPOSE}${signature.seconds}.`);
  const text = joined([begin, body], begin.length + body.length);
  for (const key of keys) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const secret = await crypto.subtle.importKey("raw", UTF8.encode(key), hmac, false, ["sign"]);
    const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", secret, text));
    const expected = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (signature.macs.some((mac) => isSame(mac, expected))) return true;
  }
  return false;
}

/** Compares texts of one length in constant time. */
function isSame(a: string, b: string): boolean {
  let difference = 0;
  for (let i = 0; i < b.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

async function run(
  type: TaskType,
  payload: unknown,
  delivery: Delivery,
  gone: AbortSignal,
): Promise<Response> {
  const { occurrence, fence, attempt, checkpoint, timeLeft } = delivery;
  const end = Date.now() + timeLeft;
  const log: string[] = [];
  let room = LARGEST_LOG;
  let noted: Pick<Answer, "checkpoint" | "nextAt"> = {};
  const context: Context = {
    type: type.type,
    occurrence,
    idempotencyKey: occurrence.key,
    fence,
    attempt,
    checkpoint,
    signal: AbortSignal.any([gone, AbortSignal.timeout(timeLeft)]),
    timeLeft: () => Math.max(0, end - Date.now()),
    log: (message, details) => {
      const line = lineOf(message, details).slice(0, room);
      room -= line.length;
      if (line) log.push(line);
    },
    saveCheckpoint: async (value) => {
      noted = {
        ...noted,
        checkpoint: JSON.parse(plainJson(value, "checkpoint", LARGEST_CHECKPOINT)) as Json,
      };
    },
    runNextAt: (time) => {
      noted = { ...noted, nextAt: roundedInstant(time, "runNextAt") };
    },
    partial: (result) => new Ending("partial", result),
    nothingToDo: (result) => new Ending("nothing-to-do", result),
  };
  try {
    const value = await type.handler(payload, context);
    const [outcome, result] = value instanceof Ending ? [value.outcome, value.result] : [undefined, value];
    return answer(200, { outcome, result: resultJson(result), log, ...noted });
  } catch (thrown) {
    return answer(500, { error: errorOf(thrown), log, ...noted });
  }
}

/** @throws `PermanentError`: a retry would do the work again, for a result that cannot be sent either */
function resultJson(result: unknown): Json | undefined {
  try {
    assertHasJson(result);
    return cutJson(result as Json, LARGEST_RESULT);
  } catch (error) {
    throw new PermanentError(`The handler's result is not JSON: ${String(error).split("\n")[0]}.`);
  }
}

/** Without a stack: anybody may get it. */
function refusal(status: number, thrown: unknown): Response {
  const { name, message } = errorOf(thrown);
  return answer(status, { error: { name, message }, log: [] });
}

function errorOf(thrown: unknown): DeliveryError {
  const { name, message, stack } = thrown instanceof Error ? thrown : new Error(String(thrown));
  const [short, frames] = [message, stack].map((text) => text?.slice(0, LARGEST_TEXT));
  return {
    name,
    message: short ?? "",
    stack: frames,
    permanent: thrown instanceof Error && isPermanentError(thrown),
  };
}

function answer(status: number, body: Answer): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json", "Cache-Control": "no-store" },
  });
}
