import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CarillonError } from "@carillon/core";
import { Redis } from "ioredis";
import { redisBinary } from "./binary.js";
import { eventually } from "./eventually.js";
import { freePort } from "./ports.js";
import { guardProcess, releaseProcess, scratchDir } from "./scratch.js";
import { type ClientTls, clientTls, tlsConfig } from "./tls.js";

const HOST = "127.0.0.1";
export const LOG = "redis.log";
const START_MS = 15_000;
const STOP_MS = 5_000;

export interface RedisServerOptions {
  /** Keep an append-only file, so that data outlives `kill()` and `restart()`; default false. */
  appendonly?: boolean;
  /** Further directives of redis.conf, by name; they override ours. A directive with several arguments is a list. */
  config?: Readonly<Record<string, string | number | readonly (string | number)[]>>;
  /** Default: any free one. */
  port?: number;
  /** Accept only TLS, with a client certificate: see `tlsFiles()`. */
  tls?: boolean;
  /** Text of an ACL file. */
  acl?: string;
  /** Password of the default user, which a replica also uses for its master. */
  password?: string;
  /** Further environment variables of the process. */
  env?: Readonly<Record<string, string>>;
}

/** Address and credentials of a server. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: ClientTls | undefined;
  readonly password?: string | undefined;
}

/** A private, real Redis server on 127.0.0.1, in a temporary folder. */
export class RedisServer implements RedisAddress {
  readonly host = HOST;
  readonly port: number;
  readonly tls: ClientTls | undefined;
  readonly password: string | undefined;
  readonly #dir: string;
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;

  /** Use {@link startRedis}. */
  constructor(dir: string, port: number, args: readonly string[], options: RedisServerOptions) {
    this.port = port;
    this.tls = options.tls ? clientTls() : undefined;
    this.password = options.password;
    this.#dir = dir;
    this.#args = args;
    this.#env = { ...process.env, ...options.env };
  }

  /** With the password of the default user, if it has one. */
  get url(): string {
    const password = this.password === undefined ? "" : `:${encodeURIComponent(this.password)}@`;
    return `${this.tls ? "rediss" : "redis"}://${password}${this.host}:${this.port}`;
  }

  /** Undefined while it is down. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it again after `kill()`. Same port, same folder. */
  async start(): Promise<void> {
    if (this.#child) return;
    const child = spawn(await redisBinary(), this.#args, {
      stdio: "ignore",
      env: this.#env,
      detached: true, // Ctrl-C must reach its users first
    });
    this.#child = child;
    child.unref();
    // A program that cannot be run at all emits "error", and no "exit".
    const ended = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? code}`));
    });
    void ended.then(() => this.#forget(child));
    if (child.pid !== undefined) guardProcess(child.pid);

    const failed = await Promise.race([this.#answering(child), ended]);
    if (failed !== undefined) throw await this.#startError(failed);
  }

  /** Kills it and removes its data: there is nothing to save. */
  async stop(): Promise<void> {
    await this.#end("SIGKILL");
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Sends SIGKILL, as in a crash; data that is on disk stays for `start()`. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops it gracefully and starts it again. Without `appendonly` it is then empty. */
  async restart(): Promise<void> {
    await this.#end("SIGTERM");
    await this.start();
  }

  /** Freezes it: connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  continue(): void {
    this.#child?.kill("SIGCONT");
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (!child) return;
    const exit = once(child, "exit");
    // A frozen process handles SIGTERM only after SIGCONT.
    if (signal === "SIGTERM") child.kill("SIGCONT");
    child.kill(signal);
    const hard = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exit;
    clearTimeout(hard);
    this.#forget(child);
  }

  #forget(child: ChildProcess): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    if (child.pid !== undefined) releaseProcess(child.pid);
  }

  async #answering(child: ChildProcess): Promise<undefined> {
    const ask = async (redis: Redis) => {
      await redis.ping(); // refused while it loads its data
      // A server of another process on this port would answer as well.
      return (await redis.info("server")).includes(`process_id:${child.pid}\r`);
    };
    await eventually(
      async () => {
        if (this.#child !== child) return true;
        try {
          return await withConnection(this, ask);
        } catch (error) {
          if (error instanceof Error && /NOAUTH|NOPERM/.test(error.message)) return true; // up, with users of its own
          throw error;
        }
      },
      { timeoutMs: START_MS },
    );
    return undefined;
  }

  async #startError(why: string): Promise<CarillonError> {
    const log = await readFile(join(this.#dir, LOG), "utf8").catch(() => "");
    const tail = log.trim().split("\n").slice(-5).join("\n");
    await rm(this.#dir, { recursive: true, force: true });
    return new CarillonError("REDIS_UNAVAILABLE", `The Redis server did not start: ${why}.\n${tail}`);
  }
}

/** Starts a server and waits until it answers. It is killed when this process ends, unless `stop()` was called before. */
export function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  return launch(options, async (dir, port) => {
    const config = { ...(await serverConfig(dir, port, options)), ...options.config };
    return Object.entries(config).flatMap(([name, value]) => [`--${name}`, ...[value].flat().map(String)]);
  });
}

async function serverConfig(dir: string, port: number, options: RedisServerOptions) {
  const { appendonly, tls, acl, password } = options;
  const aclfile = join(dir, "users.acl");
  if (acl !== undefined) await writeFile(aclfile, acl);
  return {
    port,
    bind: HOST,
    dir,
    logfile: join(dir, LOG),
    daemonize: "no",
    save: "",
    appendonly: appendonly ? "yes" : "no",
    appendfsync: "everysec",
    "maxmemory-policy": "noeviction",
    "repl-diskless-sync-delay": 0,
    ...(tls ? tlsConfig(port) : {}),
    ...(acl === undefined ? {} : { aclfile }),
    ...(password === undefined ? {} : { requirepass: password, masterauth: password }),
  };
}

/** Starts the server program on a free port. @param prepare writes its files and returns its arguments */
export async function launch(
  options: RedisServerOptions,
  prepare: (dir: string, port: number) => Promise<readonly string[]>,
): Promise<RedisServer> {
  const clusterBus = options.config?.["cluster-enabled"] === "yes";
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort({ clusterBus }));
    const dir = await mkdtemp(join(scratchDir(), "redis-"));
    const server = new RedisServer(dir, port, await prepare(dir, port), options);
    try {
      await server.start();
      return server;
    } catch (error) {
      // Another process may have taken the port meanwhile.
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || options.port !== undefined || attempt === 5) throw error;
    }
  }
}

/**
 * Opens a short connection that never retries, for checks of a server.
 * @param within longest wait for an answer, in ms
 */
export async function withConnection<T>(
  server: RedisAddress,
  use: (redis: Redis) => Promise<T>,
  within = 5_000,
): Promise<T> {
  const { host, port, tls, password } = server;
  const redis = new Redis({
    host,
    port,
    ...(tls ? { tls } : {}),
    ...(password === undefined ? {} : { password }),
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    commandTimeout: within,
    disconnectTimeout: 100,
  });
  let cause: unknown;
  redis.on("error", (error) => {
    cause = error;
  });
  try {
    await redis.connect();
    return await use(redis);
  } catch (error) {
    // A refused handshake is reported only to listeners; the call itself fails with "Connection is closed."
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}
