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
  /^(exists|m?get|h(get|getall|mget|keys|exists|len)|z(range|revrange|rangebylex|rangebyscore|revrangebyscore|lexcount|card|count|m?score)|l(range|len|index)|x(range|revrange|len|read)|smembers|scan|info|time|type|pttl|config|client|hello|slowlog|command|ping|auth|select|script|publish|p?(un)?subscribe|quit)$/i;

/** Scripts that Redis knows. */
const loaded = new Set<string>();

/** Redis forgets all scripts, as when it restarts. */
export async function forgetScripts(redis: Redis): Promise<void> {
  await redis.script("FLUSH");
  loaded.clear();
}

/** Lets a hook decide about each command that a store sends, on whatever connection. */
export function tap(store: Store, hook: Hook): void {
  const { link } = internalsOf(store);
  const names = new Map<string, string>();
  const [run, connect] = [link.run.bind(link), link.connect.bind(link)];
  link.run = async (script, keys, args) => {
    names.set(script.sha, script.name).set(script.lua, script.name);
    if (!loaded.has(script.sha)) await link.client.script("LOAD", script.lua);
    loaded.add(script.sha);
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
    const script = /^eval/i.test(command.name) ? names.get(String(command.args[0])) : undefined;
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
