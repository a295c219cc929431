import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { inPath, type Query, type Route, requestOf, searchOf } from "./request.js";
import { store } from "./store.js";
import { hasUnsaved } from "./unsaved.js";

declare const OPERATION_ROUTES: Readonly<Record<OperationName, Route>>;

/** Method, path and body of each operation; `vite.config.ts` makes this from their list. */
const ROUTES = OPERATION_ROUTES;

/** Root of the console's addresses: `/`, or the base path it is mounted at. */
export const ROOT = new URL(document.baseURI).pathname;

/** A refusal by the API. `message` contains field and remedy. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly remedy: string | undefined;

  constructor(status: number, body: { code?: string; message?: string; field?: string; remedy?: string }) {
    super(body.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? "INTERNAL";
    this.field = body.field;
    this.remedy = body.remedy;
  }
}

/** Age in seconds of an answer that a page accepts: all viewers of that time share one. */
export const SHARED = 1;

export interface Sent {
  query?: Query | undefined;
  /** For a read: age in seconds of an answer that is new enough. */
  maxAge?: number | undefined;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

type Contact = "ok" | "unreachable" | "signedOut";
const contact = store<Contact>("ok");

/** The stream of events is open: the console answers. */
export function reached(): void {
  if (contact.get() === "unreachable") contact.set("ok");
}

/** Whether the last call was answered. */
export const useContact = contact.useValue;

/** Whether the console answers now. */
export async function isReachable(): Promise<boolean> {
  const answers = await fetch(`${ROOT}health`).then(
    ({ ok }) => ok,
    () => false,
  );
  contact.set(answers ? "ok" : "unreachable");
  return answers;
}

export const UNREACHABLE = "The console does not answer.";

/** A call got no answer. The page says so once, not in each of its parts. */
export class Unreachable extends Error {}

/** Whether calls of an operation change nothing, and have no body. */
export function isGet(name: OperationName): boolean {
  return ROUTES[name].http.startsWith("GET ");
}

/**
 * Calls an operation with the session of the page.
 *
 * @example call("tasks.list", { state: "paused" })
 * @throws `ApiError`, `Unreachable`
 */
export function call<Name extends OperationName>(
  name: Name,
  input: InputTo<Name>,
  { signal, maxAge = SHARED }: Pick<Sent, "signal" | "maxAge"> = {},
): Promise<AnswerTo<Name>> {
  const { method, path, ...sent } = requestOf(ROUTES[name], input as object);
  return api(method, path, { ...sent, ...(method === "GET" && { maxAge }), signal });
}

/** An operation's call as others can make it. */
export function madeBy<Name extends OperationName>(name: Name, input: InputTo<Name>) {
  const { method, path, query, body } = requestOf(ROUTES[name], input as object);
  return { name, input: input as object, method, body, url: location.origin + apiAddress(path, query) };
}

/** Calls the HTTP API. @throws `ApiError`, `Unreachable` */
export async function api<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
  const { query, body, maxAge, signal } = sent;
  const response = await answerTo(apiAddress(path, query), {
    method,
    signal: signal ?? null,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(maxAge === undefined ? {} : { "cache-control": `max-age=${maxAge}` }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const signedOut = response.status === 401;
  contact.set(signedOut ? "signedOut" : "ok");
  // The server answers the page itself with its sign-in form.
  if (signedOut && !hasUnsaved()) location.reload();
  const text = await response.text();
  const parsed = text === "" ? undefined : parse(text);
  if (response.ok) return parsed as T;
  throw new ApiError(response.status, (parsed as { error?: object } | undefined)?.error ?? {});
}

async function answerTo(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    contact.set("unreachable");
    throw new Unreachable(UNREACHABLE);
  }
}

let bound: string | undefined;

/** For a token that is bound to several owners: the one whose tasks are shown. */
export function bindTo(owner: string | undefined): void {
  bound = owner;
}

export function boundTo(): string | undefined {
  return bound;
}

export function apiAddress(path: string, query: Query = {}): string {
  return `${ROOT}api/v1${path}${searchOf({ ...query, owner: query["owner"] || bound })}`;
}

/** An answer of a proxy in front of the console may be anything. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface Named {
  readonly queue: string;
  readonly owner: string;
  readonly id: string;
}

/** The name of a task alone, as operations take it. */
export function refOf({ queue, owner, id }: Named): Named {
  return { queue, owner, id };
}

export function taskPath({ queue, owner, id }: Named): string {
  return `/tasks/${[queue, owner, id].map(encodeURIComponent).join("/")}`;
}

export function ownerPath(owner: string): string {
  return `/?owner=${encodeURIComponent(owner)}`;
}

export function runPath(id: string): string {
  return `/runs/${inPath(id)}`;
}

/** `owner/id`, or the id alone for the default owner. */
export function shortName({ owner, id }: Pick<Named, "owner" | "id">): string {
  return owner === "system" ? id : `${owner}/${id}`;
}

/** An error without its stack, which the pages of its task and run show. */
export function firstLine(error: string): string {
  return error.split("\n", 1)[0] as string;
}
