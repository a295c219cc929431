import { hostname, userInfo } from "node:os";
import type { Operator } from "@carillon/ops";
import type { Client, TaskRef } from "@carillon/sdk";
import { Command as Base, InvalidArgumentError, Option } from "commander";
import { misuse } from "./failure.js";
import type { Io } from "./io.js";
import type { Output } from "./output.js";
import { Progress } from "./progress.js";

/** Options that every command takes, before or after its name. */
export interface Globals {
  /** Not an option: `run` adds it. */
  io: Io;
  redis?: string;
  namespace?: string;
  owner?: string;
  json?: boolean;
}

/** The options of a command that a function makes. */
export type OptionsOf<Make extends (...args: never[]) => unknown> =
  ReturnType<Make> extends Command<infer Options> ? Options : never;

/** Adds one command to the program. */
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
  const given = options.io.env;
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
   * @param more `unbound`: `--owner` selects, so hints may name other owners
   */
  answer<Answer extends object, Args extends readonly unknown[]>(
    ask: (use: Use<Options>, ...args: Args) => Promise<Answer>,
    words: (answer: Answer, args: Args, options: Options) => string,
    { unbound, ...more }: { readonly unbound?: true; readonly maxPayloadBytes?: number } = {},
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

/** `[owner/]id` and the queue. */
export function taskRef(
  text: string,
  queue: string | undefined,
  owner: string | undefined,
): Exclude<TaskRef, string> {
  const slash = text.indexOf("/");
  return slash < 0
    ? { id: text, owner, queue }
    : { owner: text.slice(0, slash), id: text.slice(slash + 1), queue };
}

/** For commander: an option that may be given several times. */
export function collect<Word extends string = string>(value: string, before: Word[] = []): Word[] {
  return [...before, value as Word];
}

/** For commander: a text of some words, which the operation checks. */
export function word<Word extends string>(text: string): Word {
  return text as Word;
}

/** For commander: a whole number; its range is checked where it is used. */
export function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number.");
}

/** `--limit`. @throws `INVALID_OPTION` */
export function limitOf(limit: number | undefined, most: number): number | undefined {
  if (limit === undefined || (limit >= 1 && limit <= most)) return limit;
  throw misuse("limit", `got ${limit}.`, `Give a whole number from 1 to ${most}.`);
}

/** A command about one task: `[owner/]id` and `--queue`. */
export function taskCommand(program: Command, name: string, summary: string) {
  return program
    .verb(name, summary)
    .argument("<task>", TASK)
    .flag("-q, --queue <queue>", "the task's queue; needed when the same id exists in several");
}

export const TASK = "[owner/]id; no owner means --owner, else system";
