import { assertOptions } from "@carillon/core/internal";
import type { AuthorOptions, Client } from "@carillon/sdk";
import { scopeOf } from "@carillon/sdk/internal";
import type { z } from "zod";
import { parseInput } from "./input.js";
import type { Call, Operation } from "./operation.js";
import { OPERATIONS } from "./operations.js";

/** The input of an operation, as a caller gives it. */
export type InputOf<Op> = Op extends Operation<infer Input> ? z.input<Input> : never;

/** The answer of an operation. */
export type AnswerOf<Op> =
  Op extends Operation<z.ZodObject, infer Output>
    ? Output extends z.ZodType
      ? z.output<Output>
      : void
    : never;

type Method<Op> =
  Record<string, never> extends InputOf<Op>
    ? (input?: InputOf<Op>, options?: AuthorOptions) => Promise<AnswerOf<Op>>
    : (input: InputOf<Op>, options?: AuthorOptions) => Promise<AnswerOf<Op>>;

type Methods<Nouns> = {
  readonly [Noun in keyof Nouns]: { readonly [Verb in keyof Nouns[Noun]]: Method<Nouns[Noun][Verb]> };
};

type Named<Name extends OperationName> = Name extends `${infer Noun}.${infer Verb}`
  ? Noun extends keyof typeof OPERATIONS
    ? Verb extends keyof (typeof OPERATIONS)[Noun]
      ? (typeof OPERATIONS)[Noun][Verb]
      : never
    : never
  : never;

/** The answer of an operation by its name: `AnswerTo<"quotas.list">`. */
export type AnswerTo<Name extends OperationName> = AnswerOf<Named<Name>>;

/** The input of an operation by its name: `InputTo<"quotas.set">`. */
export type InputTo<Name extends OperationName> = InputOf<Named<Name>>;

/** `quotas.set` and the like. */
export type OperationName = {
  [Noun in keyof typeof OPERATIONS]: `${Noun}.${keyof (typeof OPERATIONS)[Noun] & string}`;
}[keyof typeof OPERATIONS];

/** All operations as methods: `ops.quotas.set({ scope: "all", tasks: 100 })`. */
export type Operator = Methods<typeof OPERATIONS>;

/**
 * The operations of a client's namespace. Uses the client's connection, owner and author; `by` in the second argument
 * names another author. A method refuses fields that it does not know (`INVALID_OPTION`), and, for a client that is
 * bound to an owner, what concerns the whole namespace (`FORBIDDEN`).
 *
 * @example
 * const ops = operatorOf(client);
 * await ops.quotas.set({ scope: "owner:acme", tasks: 100 });
 */
export function operatorOf(client: Client): Operator {
  const nouns = Object.entries(OPERATIONS).map(([noun, verbs]) => [
    noun,
    Object.fromEntries(
      Object.entries<Operation>(verbs).map(([verb, operation]) => [
        verb,
        (input: unknown = {}, options: AuthorOptions = {}) => perform(client, operation, input, options),
      ]),
    ),
  ]);
  return Object.fromEntries(nouns) as Operator;
}

/**
 * Calls an operation for a client, whose owner bounds the caller's rights.
 *
 * @throws `INVALID_OPTION`, `FORBIDDEN`, and what the operation throws
 */
export async function perform(
  client: Client,
  operation: Operation,
  input: unknown,
  options: AuthorOptions = {},
  replacer?: Call["replacer"],
): Promise<unknown> {
  const scope = scopeOf(client);
  assertOptions(options, ["by"]);
  if (operation.reach === "namespace") scope.assertUnbound();
  const by = scope.author(options.by);
  const { store, owner } = scope;
  const kind = () => {
    if (operation.logs) return operation.logs;
    throw new TypeError(`${operation.http} declares no kind of log entry.`);
  };
  const log: Call["log"] = (object, facts) => scope.log(kind(), object, by, facts);
  const record: Call["record"] = async (object, facts) => scope.record(kind(), object, by, facts);
  const call = { client, store, scope, owner, by, replacer, log, record };
  return operation.run(call, parseInput(operation.input, input));
}
