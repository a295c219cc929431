import { setTimeout as sleep } from "node:timers/promises";
import { operatorOf } from "@carillon/ops";
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
import { Found, TaskDiscovery } from "./discovery.js";
import { nestLogger } from "./logger.js";
import { type CarillonOptions, KIT, type Kit, KNOWN, OPTIONS, type SetOptions } from "./options.js";

/** Longest wait between two tries to put the tasks, in ms. */
const LONGEST_WAIT = 30_000;
/** Tries of a replica that starts together with others: one of them wins each. */
const TRIES = 10;
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
  #set = "";
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
    const {
      connection,
      namespace,
      queue = "",
      node = true,
      worker = true,
      stopWithin,
      set,
      client,
    } = this.options;
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
    this.#set = (typeof set === "string" ? set : set?.name) ?? queue;
    if (this.#syncs && this.#set === "") faults.push("options.set: missing. Give `set` or `queue`.");
    if (this.#syncs && client?.owner !== undefined)
      faults.push("options.client.owner: the set of an app spans owners. Use client.forOwner in services.");
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

  get #syncs(): boolean {
    return this.options.sync !== false && this.#found.tasks.length > 0;
  }

  async #sync(): Promise<void> {
    const { tasks, onces } = this.#found;
    if (this.options.sync === false) return;
    if (this.#syncs) {
      for (const { task, warnings } of await this.client.putMany(tasks, { dryRun: true })) {
        for (const { code, message, remedy } of warnings) {
          // Node and worker start right after.
          const own = (code === "NO_NODE" && this.node) || (code === "NO_WORKER" && this.worker) || this.kit;
          if (!own) this.#logger.warn({ task: task.id, code, remedy }, message);
        }
      }
      if (await this.#apply()) await this.#reportOrphans();
    }
    for (const { type, once } of onces) {
      await this.client
        .enqueue(type, undefined, { id: once.id, delay: once.delay })
        .catch((error: unknown) => {
          // The run of an earlier start is not over.
          if (!isCarillonError(error, "CONFLICT")) throw error;
        });
    }
  }

  /** Makes the tasks of the app the tasks of its set. @returns false if those of a newer version are stored */
  async #apply(): Promise<boolean> {
    const { remove = false, name: _, ...set } = object<SetOptions>(this.options.set);
    const input = { ...set, set: this.#set, tasks: this.#found.tasks, keep: !remove };
    for (let tries = 1; ; tries++) {
      try {
        await operatorOf(this.client).sets.apply(input);
        return true;
      } catch (error) {
        if (isCarillonError(error, "PLAN_REFUSED") && error.field === "OLD_VERSION") {
          this.#logger.warn({ set: this.#set }, `the tasks stay as they are: ${error.message}`);
          return false;
        }
        // Another replica has begun.
        if (!isCarillonError(error, "STALE_PLAN") || tries === TRIES) throw error;
      }
    }
  }

  /** Deletes nothing unless told: an old replica that starts again during a deploy would delete what the new ones have put. */
  async #reportOrphans(): Promise<void> {
    const known = new Set(this.#found.tasks.map(({ owner = "system", id }) => `${owner}/${id}`));
    let cursor: string | undefined;
    do {
      const page = await this.client.list({ set: this.#set, limit: 1_000, cursor });
      for (const { owner, id, queue } of page.tasks) {
        if (known.has(`${owner}/${id}`)) continue;
        const remedy = "Remove it with set: { remove: true }, or with carillon delete.";
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

function object<T extends object>(value: boolean | string | T | undefined): Partial<T> {
  return typeof value === "object" ? value : {};
}

function notReady(error: unknown): Readiness {
  const reason = isCarillonError(error) ? (error.code as "REDIS_ERROR") : "REDIS_ERROR";
  return { ready: false, reason, why: String((error as Error).message) };
}
