import { hostname, userInfo } from "node:os";
import type { AnswerTo, InputTo, OperationName, Operator } from "@carillon/ops";
import type { Client } from "@carillon/sdk";
import { Command as Base, Option } from "commander";
import { misuse } from "./failure.js";
import {
  argumentOf,
  type FieldOf,
  fieldsOf,
  optionsFor,
  TASK,
  type Taking,
  type Typed,
  taskRef,
} from "./fields.js";
import { SHAPES } from "./inputs.js";
import type { Io } from "./io.js";
import { momentsOf } from "./moment.js";
import type { Output } from "./output.js";
import { Progress } from "./progress.js";

export { TASK, taskRef, wholeNumber } from "./fields.js";

/** Options that every command takes, before or after its name. */
export interface Globals {
  /** Not an option: `run` adds it. */
  io: Io;
  redis?: string;
  namespace?: string;
  owner?: string;
  json?: boolean;
}

export type OptionsOf<Make extends (...args: never[]) => unknown> =
  ReturnType<Make> extends Command<infer Options> ? Options : never;

export type Register = (program: Command, out: Output) => void;

/**
 * Opens a client for as long as `use` takes. The SDK is loaded here and not at the top: it brings zod and
 * ioredis, which `--help` need not wait for.
 */
export async function withClient<T>(
  options: Omit<Globals, "owner"> & { readonly owner?: string | undefined },
  use: (client: Client, ops: Operator) => Promise<T>,
  more: { maxPayloadBytes?: number } = {},
): Promise<T> {
  const { Client, operatorOf, readEnvironment } = await import("./load.js");
  const { env: given, store } = options.io;
  const env = {
    ...given,
    REDIS_URL: options.redis ?? given.REDIS_URL,
    CARILLON_NAMESPACE: options.namespace ?? given.CARILLON_NAMESPACE,
  };
  if (!env.REDIS_URL)
    throw misuse("REDIS_URL", "missing.", "Give --redis URL, or set REDIS_URL=redis://localhost:6379.");
  const progress = new Progress(options.io.stderr);
  // Time limit of one attempt; the store makes four.
  const client = new Client({
    ...readEnvironment(env),
    ...(store && { connection: undefined, store }),
    owner: options.owner,
    by: author(given),
    origin: `cli ${hostname()}`,
    connectTimeout: 3_000,
    onProgress: (tasks) => progress.add(tasks),
    ...more,
  });
  try {
    return await use(client, operatorOf(client));
  } finally {
    progress.end();
    await client.close();
  }
}

/** The surroundings of a command that asks Redis. */
export interface Use<Options extends Globals = Globals> {
  readonly ops: Operator;
  readonly client: Client;
  readonly options: Options;
}

/** `-n, --dry-run <x>` as the name of its value, `dryRun`. */
type NameOf<Flags extends string> = Flags extends `${string}--${infer Long}`
  ? Long extends `no-${infer Name}`
    ? Name
    : Camel<Long extends `${infer Name} ${string}` ? Name : Long>
  : never;
type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type Given<Flags extends string> = Flags extends `${string}<${string}` ? string : boolean;
type Reader<Value> = ((text: string, before: Value) => Value) | readonly Value[];

export interface Calling<Name extends OperationName, Options extends Globals = Globals> extends Taking<Name> {
  /** Fields that are arguments. Default: those that are required. A task's `id`, `owner` and `queue` are `[owner/]id` and `--queue`. */
  readonly args?: readonly FieldOf<Name>[];
  /** Fields that are arguments or options. Default: all, but the owner, which is a global option. */
  readonly only?: readonly FieldOf<Name>[];
  /** Fields that are neither. */
  readonly but?: readonly FieldOf<Name>[];
  /** Completes or refuses the input that options and arguments give. */
  readonly input?: (
    input: InputTo<Name>,
    use: Use<Options>,
    args: readonly unknown[],
  ) => Partial<InputTo<Name>> | void | Promise<Partial<InputTo<Name>> | void>;
  /** Fields of the JSON answer besides those of the operation. */
  readonly also?: (input: InputTo<Name>) => object;
  readonly more?: More;
}

/** `unbound`: `--owner` selects, so hints may name other owners. */
interface More {
  readonly unbound?: true;
  readonly maxPayloadBytes?: number;
}

/** A command, and the output that it answers to. Its options are known by their flags. */
export class Command<Options extends Globals = Globals> extends Base {
  readonly #out: Output;

  constructor(name: string, out: Output) {
    super(name);
    this.#out = out;
  }

  override createCommand(name = ""): Command {
    return new Command(name, this.#out);
  }

  /** Adds a command. @param description default: the summary */
  verb(name: string, summary: string, description = `${summary}.`): Command {
    return this.command(name).summary(summary).description(description);
  }

  /** Adds an option. @param read makes a value of the text, or lists the values allowed */
  flag<Flags extends string, const Value = Given<Flags>>(flags: Flags, about: string, read?: Reader<Value>) {
    return this.addOption(optionOf(flags, about, read)) as unknown as Command<
      Options & { [Name in NameOf<Flags>]?: Value }
    >;
  }

  /** Adds an option that must be given, or has a default. */
  needs<Flags extends string, const Value = string>(
    flags: Flags,
    about: string,
    { read, otherwise }: { read?: Reader<Value>; otherwise?: NoInfer<Value> } = {},
  ) {
    const option = optionOf(flags, about, read).default(otherwise).makeOptionMandatory();
    return this.addOption(option) as unknown as Command<Options & { [Name in NameOf<Flags>]: Value }>;
  }

  /** Adds an option for each of these fields of an operation's input, and `--by` if it changes something. */
  takes<Name extends OperationName, const Field extends FieldOf<Name>>(
    operation: Name,
    fields: readonly Field[],
    how: Taking<Name> = {},
  ) {
    for (const option of optionsFor(operation, fields, how)) this.addOption(option);
    if (SHAPES[operation].by && !this.options.some(({ long }) => long === "--by"))
      this.option("--by <name>", "who; default $USER@host");
    return this as unknown as Command<
      Options & { [Name_ in Field]?: Typed<InputTo<Name>[Name_]> } & { by?: string }
    >;
  }

  /**
   * Calls an operation and prints its answer: its fields are arguments and options, and its summary the description of the command, unless
   * that has one of its own.
   */
  calls<Name extends OperationName>(
    operation: Name,
    words: (answer: AnswerTo<Name>, input: InputTo<Name>, options: Options) => string,
    how: Calling<Name, Options> = {},
  ): this {
    const { fields, summary, by } = SHAPES[operation];
    if (this.description() === `${this.summary()}.`) this.description(summary);
    const required = (name: string) => fields[name]?.required === true;
    const names = how.only ?? fieldsOf(operation).filter((name) => !how.but?.includes(name));
    const args = how.args ?? names.filter(required);
    for (const name of args) this.addArgument(argumentOf(operation, name, how));
    const options = names.filter((name) => !args.includes(name) && (name !== "owner" || required(name)));
    this.takes(operation, options, how);
    for (const option of this.options) if (required(option.attributeName())) option.makeOptionMandatory();
    let input = {} as InputTo<Name>;
    return this.answer(
      async (use, ...values) => {
        input = await inputOf(operation, args, values, options, use, how.times);
        Object.assign(input, await how.input?.(input, use, values));
        const { by: author } = use.options as { by?: string };
        const answer = await ask(use.ops, operation, input, by ? author : undefined);
        return { ...how.also?.(input), ...(answer as object) };
      },
      (answer, _, options) => words(answer as AnswerTo<Name>, input, options),
      how.more,
    );
  }

  /** Does something that has more than one answer. @param act gets the options, and the arguments of the command */
  does<Args extends readonly unknown[]>(act: (options: Options, ...args: Args) => Promise<void>): this {
    return this.action((...given: unknown[]) =>
      act(this.optsWithGlobals<Options>(), ...(given.slice(0, -2) as unknown as Args)),
    );
  }

  /**
   * Asks and prints the answer: with `--json` as it is, which is the answer of the HTTP API too, else as the text that `words`
   * makes of it.
   *
   * @param ask gets the arguments of the command
   */
  answer<Answer extends object, Args extends readonly unknown[]>(
    ask: (use: Use<Options>, ...args: Args) => Promise<Answer>,
    words: (answer: Answer, args: Args, options: Options) => string,
    { unbound, ...more }: More = {},
  ): this {
    // Commander gives two more after the arguments: the options of this command alone, and the command.
    return this.action(async (...given: unknown[]) => {
      const options = this.optsWithGlobals<Options>();
      const args = given.slice(0, -2) as unknown as Args;
      const answer: Answer = await withClient(
        unbound ? { ...options, owner: undefined } : options,
        (client, ops) => ask({ ops, client, options }, ...args),
        more,
      );
      await (options.json ? this.#out.json<object>(answer) : this.#out.write(words(answer, args, options)));
    });
  }
}

export function ask<Name extends OperationName>(
  ops: Operator,
  operation: Name,
  input: InputTo<Name>,
  by: string | undefined,
): Promise<AnswerTo<Name>> {
  type Ask = (input: InputTo<Name>, author: { by?: string | undefined }) => Promise<AnswerTo<Name>>;
  const [noun = "", verb = ""] = operation.split(".");
  return (ops as unknown as Record<string, Record<string, Ask>>)[noun]![verb]!(input, { by });
}

/** The input that arguments and options give. */
async function inputOf<Name extends OperationName>(
  operation: Name,
  args: readonly string[],
  values: readonly unknown[],
  options: readonly string[],
  { client, options: given }: Use,
  times: Taking<Name>["times"] = "before",
): Promise<InputTo<Name>> {
  const { fields } = SHAPES[operation];
  const all: Readonly<Record<string, unknown>> = { ...given };
  const found: Record<string, unknown> = Object.fromEntries([
    ...options.map((name) => [name, all[name]]),
    ...args.map((name, i) => [name, isEmpty(values[i]) ? undefined : values[i]]),
  ]);
  if (fields["owner"]) found["owner"] ??= given.owner;
  // A task is named `[owner/]id`.
  const name = fields["id"] && fields["owner"] ? "id" : "task";
  if (fields["owner"] && typeof found[name] === "string") {
    const { id, owner } = taskRef(found[name], undefined, given.owner);
    Object.assign(found, { [name]: id, owner });
  }
  const texts = Object.keys(found).filter((name) => fields[name]?.kind === "time");
  const moments = await momentsOf(
    client,
    Object.fromEntries(texts.map((name) => [name, found[name] as string | undefined])),
    times,
    all["timezone"] as string | undefined,
  );
  return { ...found, ...moments } as InputTo<Name>;
}

/** An optional list that is not given. */
const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;

/** If the namespace is empty, says so and names the others of this Redis, because its name may be misspelt. */
export async function noteIfEmpty(client: Client, out: Output): Promise<void> {
  const ops = (await import("./load.js")).operatorOf(client);
  if (client.owner !== undefined || (await ops.names.list({ of: "queue" })).names.length > 0) return;
  // A user of the shipped ACL may not read other namespaces.
  const others = await ops.namespaces.list().then(
    ({ namespaces }) => namespaces,
    () => [],
  );
  const elsewhere = others.length > 0 ? ` This Redis also has ${others.join(", ")} (--namespace).` : "";
  out.note(`nothing is stored in the namespace ${client.namespace}.${elsewhere}`);
}

function optionOf<Value>(flags: string, about: string, read: Reader<Value> | undefined): Option {
  const option = new Option(flags, about);
  if (typeof read === "function") return option.argParser(read);
  return read === undefined ? option : option.choices(read as readonly string[]);
}

/** The user of this machine, as the author of changes. */
function author(env: Io["env"]): string {
  return `${env.USER || env.LOGNAME || systemUser()}@${hostname()}`.slice(0, 500);
}

/** Services and containers often have no USER. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // The process runs under a numeric id without a user.
    return "unknown";
  }
}

/** For commander: an option that may be given several times. */
export function collect<Word extends string = string>(value: string, before: Word[] = []): Word[] {
  return [...before, value as Word];
}

/** A command about one task: `[owner/]id` and `--queue`. */
export function taskCommand(program: Command, name: string, summary: string) {
  return program
    .verb(name, summary)
    .argument("<task>", TASK)
    .flag("-q, --queue <queue>", "the task's queue; needed when the same id exists in several");
}
