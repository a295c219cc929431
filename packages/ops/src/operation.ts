import type { ScheduleInput, TaskInput } from "@carillon/core";
import type { Client } from "@carillon/sdk";
import type { ChangeFacts, ChangeKind, ChangeScope, Scope } from "@carillon/sdk/internal";
import type { Store, TokenRole } from "@carillon/store";
import type { z } from "zod";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** A call's surroundings: everything that an operation gets besides its input. */
export interface Call {
  /** The application's client: an operation that it has too calls its method. */
  readonly client: Client;
  readonly store: Store;
  /** Store and owner of the client, for what the SDK computes too. */
  readonly scope: Scope;
  /** The owner that the caller is bound to; undefined: it sees all. */
  readonly owner: string | undefined;
  /** The author of the change; "" unknown. */
  readonly by: string;
  /** Hides values of the answer's JSON from the caller; what it searches must not find them either. Undefined: it sees all. */
  readonly replacer?: ((key: string, value: unknown) => unknown) | undefined;
  /** Adds an entry to the change log, after the change. Its kind is the operation's `logs`. */
  log(object: ChangeScope, facts?: ChangeFacts): void;
  /** Adds the entry of a change that can be undone. Called before the change, so that one that dies midway can be undone too. Returns its id. */
  record(object: ChangeScope, facts: ChangeFacts): Promise<string>;
}

/**
 * Protection of an operation whose calls are repeated, made by two people at one instant, cut short by the death of their program, or
 * overtaken by other calls. The battery of `test/battery` tries all of that with each operation of the list.
 *
 * - `reads`: nothing is changed.
 * - `script`: one script makes the whole change, and its own `once` protects it.
 * - `Many`: the change takes several steps.
 */
export type Once = "reads" | "script" | Many;

/** An operation that changes things in several steps, between which anything may happen. */
export interface Many {
  /**
   * Recognition of a repetition.
   *
   * - `state`: by the state. A thing that is in the wanted state already is left alone, and not counted.
   * - `key`: by the input's `key`. A call without one is another call.
   * - `revision`: by the revisions that the call has read; it compares them when it writes.
   * - `new`: none. Each call makes something of its own, which its answer names.
   */
  readonly known: "state" | "key" | "revision" | "new";
  /**
   * State after a call that died midway. `whole`: each thing is done or not, and a repetition does the rest. `held`: something is half done
   * and marked as such; others leave it alone until a repetition continues it.
   */
  readonly leaves: "whole" | "held";
  /**
   * Other calls that may come between two of its steps: they undo it, or do the same in another way. Their input: the fields of the example
   * that they have too, and those given here.
   */
  readonly against: readonly (readonly [operation: `${string}.${string}`, input?: object])[];
}

/**
 * One thing that a person or a program can ask or do. Its method in the client, its route with rights, checks and
 * description, and the CLI's JSON follow from this value; its name is its place in `OPERATIONS`.
 */
export interface Operation<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodType | undefined = z.ZodType | undefined,
> {
  /** Method and path below the API's address: `PUT /quotas/:scope`. The input has a field for each part with a colon. */
  readonly http: `${Method} /${string}`;
  /**
   * The input field that a body of HTTP is as a whole; query and path have the others. Default: the body is an object of all fields but
   * those of the path.
   */
  readonly body?: string;
  /** The least role that may call it over HTTP. */
  readonly role: TokenRole;
  /** Input fields that only admins may give. */
  readonly adminFields?: readonly string[];
  /**
   * `owner`: callers that are bound to an owner may call it too, and it reaches only that owner's tasks. `local`: bound clients of a
   * program may, which may read Redis anyway, but not bound tokens of the HTTP API.
   */
  readonly reach: "owner" | "local" | "namespace";
  /** `computes`: the API runs such calls of one token one at a time. */
  readonly cost?: "computes";
  /**
   * Kind of its entries in the change log. Every operation that is not a GET has one, or `false`: it changes nothing, or
   * the record of a run names the author.
   */
  readonly logs?: ChangeKind | false;
  /** Required for all but GET. */
  readonly once?: Once;
  /** Input for the battery: fields for which it cannot find values by their schema. */
  readonly example?: object;
  /** One sentence for the API's description and the docs. */
  readonly summary: string;
  readonly input: Input;
  /** Shape of the answer, for the API's description; tests check answers against it. Undefined: none. */
  readonly output?: Output;
  /**
   * Status of a success over HTTP. Default: 200, or 204 without an answer. Of two, an answer about something
   * new gets the second: its `outcome` is `created`, or it has an `id` or a `batch`.
   */
  readonly status?: readonly number[];
  run(call: Call, input: z.output<Input>): Promise<Output extends z.ZodType ? z.input<Output> : void>;
}

/** A task of the world in which the battery tries operations. */
export function exampleTask(
  id: string,
  schedule: ScheduleInput = { every: "2h" },
  queue = "bells",
): TaskInput {
  return { id, owner: "acme", queue, type: "ring", schedule, payload: {} };
}

/** Declares an operation. Only gives types. */
export function operation<Input extends z.ZodObject, Output extends z.ZodType | undefined = undefined>(
  declared: Operation<Input, Output> & {
    readonly body?: keyof Input["shape"];
    readonly adminFields?: readonly (keyof Input["shape"])[];
    readonly example?: Partial<z.input<Input>>;
  } & (
      | { readonly http: `GET /${string}`; readonly once?: undefined }
      | { readonly http: `${Exclude<Method, "GET">} /${string}`; readonly once: Once }
    ),
): Operation<Input, Output> {
  return declared;
}
