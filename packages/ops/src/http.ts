import { TOKEN_ROLES } from "@carillon/store";
import type { Method, Operation } from "./operation.js";
import { OPERATIONS } from "./operations.js";

export interface HttpOperation {
  /** `quotas.set` */
  readonly name: string;
  /** `quotas` */
  readonly noun: string;
  readonly method: Method;
  /** `/quotas/:scope` */
  readonly path: string;
  /** The named parts of the path. */
  readonly parts: readonly string[];
  readonly statuses: readonly number[];
  readonly operation: Operation;
}

export const HTTP_OPERATIONS: readonly HttpOperation[] = Object.entries(OPERATIONS).flatMap(([noun, verbs]) =>
  Object.entries<Operation>(verbs).map(([verb, operation]) => {
    const [method, path] = operation.http.split(" ") as [Method, string];
    return {
      name: `${noun}.${verb}`,
      noun,
      method,
      path,
      parts: [...path.matchAll(/:(\w+)/g)].map(([, part]) => part as string),
      statuses: operation.status ?? [operation.output === undefined ? 204 : 200],
      operation,
    };
  }),
);

const PATTERNS = HTTP_OPERATIONS.map((one) => ({
  one,
  pattern: new RegExp(`^${one.path.replace(/:\w+/g, "[^/]+")}/?$`, "i"),
}));

/** The rights that a request needs. */
export interface Rights extends Pick<Operation, "role" | "reach"> {
  /** `quotas` */
  readonly noun: string;
}

/**
 * The rights of the operation that a request asks for. Another write at its path is for admins, another read for those
 * who may read everything of its noun: so a router that is more lenient about methods, letters and slashes opens
 * nothing. Undefined: no operation's path.
 *
 * @param path below the API's address, percent-encoded
 */
export function rightsAt(method: string, path: string): Rights | undefined {
  const reads = method === "GET" || method === "HEAD";
  const matching = PATTERNS.filter(({ pattern }) => pattern.test(path)).map(({ one }) => one);
  // `/tasks/pause` is not a task.
  const [first] = matching.sort((a, b) => a.parts.length - b.parts.length);
  if (first === undefined) return undefined;
  const { noun } = first;
  const there = matching.filter((one) => one.path === first.path);
  const asked = there.find((one) => (reads ? one.method === "GET" : one.method === method));
  if (asked) return { noun, role: asked.operation.role, reach: asked.operation.reach };
  const readers = HTTP_OPERATIONS.filter((one) => one.noun === noun && one.method === "GET");
  const strictest = Math.max(0, ...readers.map(({ operation }) => TOKEN_ROLES.indexOf(operation.role)));
  const isOwned = reads && there.every(({ operation }) => operation.reach === "owner");
  return { noun, reach: isOwned ? "owner" : "namespace", role: reads ? TOKEN_ROLES[strictest]! : "admin" };
}

/** The status of a success with this answer. A dry run makes nothing. */
export function statusOf({ statuses }: HttpOperation, answer: unknown, isDry: boolean): number {
  const [first = 200, created = first] = statuses;
  const { outcome, id, batch } = Object(answer) as Record<string, unknown>;
  const isNew = outcome === "created" || id !== undefined || batch !== undefined;
  return isNew && !isDry ? created : first;
}
