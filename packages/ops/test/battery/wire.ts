import type { RedisClient, Store } from "@carillon/store";
import { internalsOf, onceOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";

/** A command on its way to Redis. */
export interface Sent {
  /** The script's name, or the command's. */
  readonly name: string;
  /** Whether it may change something. A script of which any copy is harmless does not count. */
  readonly writes: boolean;
  /** Lets it go. */
  pass(): Promise<unknown>;
  /** Sends a copy. */
  copy(): Promise<unknown>;
}

/** Decides about a command: passes it, holds it, or throws the error with which it fails. */
export type Hook = (sent: Sent) => Promise<unknown>;

/** A command of ioredis. */
interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly promise: Promise<unknown>;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}
interface Sending {
  sendCommand(command: Command, stream?: unknown): Promise<unknown>;
  call(name: string, ...args: unknown[]): Promise<unknown>;
}

const READS =
  /^(exists|m?get|h(get|getall|mget|keys|exists|len)|z(range|revrange|rangebylex|rangebyscore|revrangebyscore|lexcount|card|count|m?score)|l(range|len|index)|x(range|revrange|len|read)|smembers|scan|info|time|type|pttl|config|client|hello|slowlog|command|ping|auth|select|script|function|publish|p?(un)?subscribe|quit)$/i;

/** Scripts that Redis knows, those too that it knows as functions. */
const loaded = new Set<string>();

/** Redis forgets all scripts and functions, as when it restarts without its data. */
export async function forgetScripts(redis: Redis): Promise<void> {
  await redis.script("FLUSH");
  await redis.function("FLUSH").catch(withoutFunctions);
  loaded.clear();
}

/** A server of version 6 has no functions. Another trial may have loaded this one. */
function withoutFunctions(error: Error): void {
  if (!/unknown command|already exists/.test(error.message)) throw error;
}

/** Lets a hook decide about each command that a store sends, on whatever connection. */
export function tap(store: Store, hook: Hook): void {
  const { link } = internalsOf(store);
  const names = new Map<string, string>();
  const [run, connect] = [link.run.bind(link), link.connect.bind(link)];
  link.run = async (script, keys, args) => {
    const { sha, lua, name, resident } = script;
    names.set(sha, name).set(lua, name);
    if (resident) names.set(resident.name, name);
    // The trials are about calls, and not about what Redis does not know yet.
    if (!loaded.has(sha)) {
      await link.client.script("LOAD", lua);
      if (resident) await link.client.function("LOAD", resident.lua).catch(withoutFunctions);
    }
    loaded.add(sha);
    return run(script, keys, args);
  };
  link.connect = (profile) => tapped(connect(profile), names, hook);
  tapped(link.client, names, hook);
}

function writes(name: string, script: string | undefined): boolean {
  if (script === undefined) return !READS.test(name);
  const once = onceOf(script);
  return once !== "reads" && typeof once === "string" && script !== "add-change";
}

function tapped(client: RedisClient, names: ReadonlyMap<string, string>, hook: Hook): RedisClient {
  const sending = client as unknown as Sending;
  const pass = sending.sendCommand.bind(client);
  let copying = false;
  sending.sendCommand = (command, stream) => {
    const script = /^(eval|fcall)/i.test(command.name) ? names.get(String(command.args[0])) : undefined;
    // Pipelines only read.
    if (stream || copying) return pass(command, stream);
    const sent: Sent = {
      name: script ?? command.name,
      writes: writes(command.name, script),
      pass: () => pass(command),
      copy: () => {
        copying = true;
        try {
          return sending.call(command.name, ...command.args);
        } finally {
          copying = false;
        }
      },
    };
    hook(sent).then(
      (answer) => command.resolve(answer),
      (error) => command.reject(error),
    );
    return command.promise;
  };
  return client;
}
