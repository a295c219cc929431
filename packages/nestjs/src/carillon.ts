import { setTimeout as sleep } from "node:timers/promises";
import { type Readiness, Scheduler } from "@carillon/scheduler";
import { CarillonError, Client, isCarillonError, Worker } from "@carillon/sdk";
import { parseDuration } from "@carillon/sdk/schedule";
import {
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from "@nestjs/common";
import { HttpAdapterHost } from "@nestjs/core";
import { Found, TAG, TaskDiscovery } from "./discovery.js";
import { nestLogger } from "./logger.js";
import { type CarillonOptions, KIT, type Kit, KNOWN, OPTIONS } from "./options.js";

/** Longest wait between two tries to put the tasks, in ms. */
const LONGEST_WAIT = 30_000;
/** Shorter than the 30 s after which Kubernetes kills. */
const STOP_WITHIN = "25s";

/**
 * The node and the worker of this process. Once the app listens, it puts the tasks, starts the node, then the worker; an app without HTTP
 * starts them when it is initialised. When the app closes, it stops them before providers of other modules are destroyed.
 */
@Injectable()
export class Carillon
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  /** Undefined with `node: false`, and in tests. */
  node: Scheduler | undefined;
  /** For its events and metrics. Undefined with `worker: false`, without handlers, and in tests. */
  worker: Worker | undefined;
  readonly #logger = nestLogger();
  readonly #stopping = new AbortController();
  #found = new Found();
  #started: Promise<void> | undefined;
  #state: Readiness = { ready: false, reason: "STARTING", why: "starting" };

  constructor(
    @Inject(OPTIONS) private readonly options: CarillonOptions,
    @Inject(KIT) private readonly kit: Kit | undefined,
    @Inject(Client) readonly client: Client,
    @Inject(TaskDiscovery) private readonly discovery: TaskDiscovery,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
  ) {}

  /** Whether the tasks were put, and node and worker do their work; if not, why. */
  async readiness(): Promise<Readiness> {
    if (!this.#state.ready || this.kit) return this.#state;
    if (this.node) return this.node.readiness;
    return this.client.serverTime().then(() => this.#state, notReady);
  }

  /** @throws `INVALID_OPTION` with all faults of the decorators and the options */
  async onModuleInit(): Promise<void> {
    this.#found = await this.discovery.find(this.options);
    const { types, faults } = this.#found;
    const { connection, namespace, node = true, worker = true, stopWithin } = this.options;
    const common = { logger: this.#logger, connection, namespace };
    const attempt = (field: string, act: () => void) => {
      try {
        act();
      } catch (error) {
        faults.push(`options${field}: ${(error as Error).message}`);
      }
    };
    for (const key of Object.keys(this.options))
      if (!KNOWN.some((one) => one === key)) faults.push(`options.${key}: there is no such option.`);
    attempt(".stopWithin", () => parseDuration(stopWithin ?? STOP_WITHIN));
    if (!this.kit && node) {
      attempt(".node", () => {
        this.node = new Scheduler({ ...common, ...object(node) });
      });
    }
    if (!this.kit && worker && types.length > 0) {
      attempt(".worker", () => {
        this.worker = new Worker({ ...common, ...object(worker), types });
      });
    }
    if (faults.length === 0) return;
    await this.onModuleDestroy();
    await this.onApplicationShutdown();
    const list = faults.map((fault) => `\n- ${fault}`).join("");
    throw new CarillonError("INVALID_OPTION", `${faults.length} faults in the tasks of this app:${list}`);
  }

  async onApplicationBootstrap(): Promise<void> {
    const { httpAdapter, listening, listen$ } = this.host;
    if (this.kit) await this.#startKit(this.kit);
    else if (!httpAdapter || listening) void this.start();
    else listen$.subscribe(() => void this.start());
  }

  async #startKit(kit: Kit): Promise<void> {
    const { worker } = this.options;
    await this.#sync();
    const { queues, middleware, concurrency } = object(worker);
    await kit.work({ types: this.#found.types, queues, middleware, concurrency });
    this.#state = { ready: true };
  }

  /** Starts once; call it only in an app with HTTP that never listens. Never rejects: what fails is logged, and `readiness` says it. */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    const { signal } = this.#stopping;
    if (process.listenerCount("SIGTERM") === 0)
      this.#logger.warn({}, "nothing handles SIGTERM, so it cuts runs off: call app.enableShutdownHooks()");
    if (this.#found.types.length === 0)
      this.#logger.warn({}, "no provider has a method with @Task or @TaskHandler");
    let works = await this.#syncPatiently();
    for (const part of [this.node, this.worker]) {
      if (signal.aborted) return;
      await part?.start().catch((error: unknown) => {
        works = this.#fail(error, "could not start");
      });
    }
    if (works && !signal.aborted) this.#state = { ready: true };
  }

  /** Tries again while Redis cannot be reached. */
  async #syncPatiently(): Promise<boolean> {
    const { signal } = this.#stopping;
    for (let wait = 1_000; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      try {
        await this.#sync();
        return true;
      } catch (error) {
        if (signal.aborted) break;
        this.#fail(error, "the tasks could not be put");
        if (!isCarillonError(error) || !error.code.startsWith("REDIS_")) break;
        await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    return false;
  }

  async #sync(): Promise<void> {
    if (this.options.sync === false) return;
    const { tasks, onces } = this.#found;
    const known = new Set<string>();
    for (const { task, warnings } of await this.client.putMany(tasks)) {
      known.add(`${task.queue}/${task.owner}/${task.id}`);
      for (const { code, message, remedy } of warnings) {
        // Node and worker start right after.
        const own = (code === "NO_NODE" && this.node) || (code === "NO_WORKER" && this.worker) || this.kit;
        if (!own) this.#logger.warn({ task: task.id, code, remedy }, message);
      }
    }
    for (const { type, once } of onces) {
      await this.client
        .enqueue(type, undefined, { id: once.id, delay: once.delay })
        .catch((error: unknown) => {
          // The run of an earlier start is not over.
          if (!isCarillonError(error, "CONFLICT")) throw error;
        });
    }
    for (const queue of new Set(tasks.map((task) => task.queue))) await this.#reportOrphans(queue, known);
  }

  /** Deletes nothing: an old replica that starts again during a deploy would delete what the new ones have put. */
  async #reportOrphans(queue: string, known: ReadonlySet<string>): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.client.list({ queue, tag: TAG, limit: 1_000, cursor });
      for (const { owner, id } of page.tasks) {
        if (known.has(`${queue}/${owner}/${id}`)) continue;
        const remedy = `If no other release of this app has it: carillon delete ${owner}/${id} --queue ${queue}`;
        this.#logger.warn({ task: `${owner}/${id}`, queue, remedy }, "a stored task has no method");
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  #fail(error: unknown, message: string): false {
    this.#state = notReady(error);
    this.#logger.error({ error: isCarillonError(error) ? error.message : (error as Error).stack }, message);
    return false;
  }

  async onModuleDestroy(): Promise<void> {
    this.#stopping.abort();
    this.#state = { ready: false, reason: "STOPPING", why: "stopping" };
    await this.worker?.stop({ within: this.options.stopWithin ?? STOP_WITHIN });
    await this.node?.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
    await this.#started;
    await this.kit?.close();
  }
}

function object<T extends object>(value: boolean | T | undefined): Partial<T> {
  return typeof value === "object" ? value : {};
}

function notReady(error: unknown): Readiness {
  const reason = isCarillonError(error) ? (error.code as "REDIS_ERROR") : "REDIS_ERROR";
  return { ready: false, reason, why: String((error as Error).message) };
}
