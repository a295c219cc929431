import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { CarillonError } from "@carillon/core";
import { Redis } from "ioredis";
import { redisBinary } from "./binary.js";
import { eventually } from "./eventually.js";
import { freePort } from "./ports.js";
import { guardProcess, releaseProcess, scratchDir } from "./scratch.js";

const HOST = "127.0.0.1";
const START_MS = 15_000;
const STOP_MS = 5_000;

export interface RedisServerOptions {
  /** Keep an append-only file, so that data outlives `kill()` and `restart()`; default false. */
  appendonly?: boolean;
  /** Further directives of redis.conf, by name; they win over ours. */
  config?: Readonly<Record<string, string | number>>;
  /** Default: any free one. */
  port?: number;
}

/** A real Redis server of one's own, on 127.0.0.1, in a temporary folder. */
export class RedisServer {
  readonly host = HOST;
  readonly port: number;
  readonly #dir: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  /** Use {@link startRedis}. */
  constructor(dir: string, port: number, options: RedisServerOptions) {
    this.port = port;
    this.#dir = dir;
    const config = {
      port,
      bind: HOST,
      dir,
      logfile: join(dir, "redis.log"),
      daemonize: "no",
      save: "",
      appendonly: options.appendonly ? "yes" : "no",
      appendfsync: "everysec",
      "maxmemory-policy": "noeviction",
      ...options.config,
    };
    this.#args = Object.entries(config).flatMap(([name, value]) => [`--${name}`, String(value)]);
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** Undefined while it is down. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it again after `kill()`. Same port, same folder. */
  async start(): Promise<void> {
    if (this.#child) return;
    const child = spawn(await redisBinary(), this.#args, { stdio: "ignore" });
    this.#child = child;
    child.unref();
    // "error" is a program that cannot be run at all; it emits no "exit".
    const ended = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? code}`));
    });
    void ended.then(() => this.#forget(child));
    if (child.pid !== undefined) guardProcess(child.pid);

    const failed = await Promise.race([this.#answering(child), ended]);
    if (failed !== undefined) throw await this.#startError(failed);
  }

  /** Stops it and removes its data. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** SIGKILL, as a crash would; data stays for `start()`, as far as it was on disk. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** An orderly stop and start. Without `appendonly` it comes back empty. */
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
    // A frozen process only takes SIGTERM once it goes on.
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
      // Someone else's server on this port answers as well.
      return (await redis.info("server")).includes(`process_id:${child.pid}\r`);
    };
    await eventually(
      async () => {
        if (this.#child !== child) return true;
        try {
          return await withConnection(this, ask);
        } catch (error) {
          if (error instanceof Error && error.message.includes("NOAUTH")) return true; // up, with a password
          throw error;
        }
      },
      { timeoutMs: START_MS },
    );
    return undefined;
  }

  async #startError(why: string): Promise<CarillonError> {
    const log = await readFile(join(this.#dir, "redis.log"), "utf8").catch(() => "");
    const tail = log.trim().split("\n").slice(-5).join("\n");
    await rm(this.#dir, { recursive: true, force: true });
    return new CarillonError("REDIS_UNAVAILABLE", `The Redis server did not start: ${why}.\n${tail}`);
  }
}

/** Starts a server and waits until it answers. It dies with this process, if `stop()` was not called before. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const clusterBus = options.config?.["cluster-enabled"] === "yes";
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort({ clusterBus }));
    const server = new RedisServer(await mkdtemp(join(scratchDir(), "redis-")), port, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      // Someone may have taken the port since we looked.
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || options.port !== undefined || attempt === 5) throw error;
    }
  }
}

/** One short connection that never retries: for looking at a server, not for working with it. */
export async function withConnection<T>(
  server: { host: string; port: number },
  use: (redis: Redis) => Promise<T>,
): Promise<T> {
  const redis = new Redis({
    host: server.host,
    port: server.port,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
  });
  let cause: unknown;
  redis.on("error", (error) => {
    cause = error;
  });
  try {
    await redis.connect();
    return await use(redis);
  } catch (error) {
    // A handshake that was refused is only told to listeners; the call itself says "Connection is closed."
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}
