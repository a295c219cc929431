import { bullPrefix, type CarillonError, type Client, type Logger } from "@carillon/sdk";
import type { connect, Store } from "@carillon/sdk/internal";
import type { Queue } from "bullmq";
import type { Hono } from "hono";
import { ROLES, type Role } from "./auth.js";
import { BoardQueue } from "./board-queue.js";
import { boardView, type View } from "./board-view.js";
import type { Env, Site } from "./context.js";
import { coded, unreachable } from "./errors.js";
import type { Redactor } from "./redact.js";
import { TaskAdapter } from "./task-adapter.js";

export type Connection = ReturnType<typeof connect>;

export interface BoardOptions {
  client: Client;
  store: Store;
  /**
   * Shared by all queues. Of the profile "safe", so that an operator's command is never sent twice. Undefined: without
   * Bull Board.
   */
  connection: Connection | undefined;
  logger: Logger;
  redactor: Redactor;
  site: Site;
  /** Interval in ms at which the list of queues is read; default 3,000. */
  refreshEvery?: number | undefined;
}

/** Bull Board over all queues of the namespace, once for each role. */
export class Board {
  readonly #client: Client;
  readonly #store: Store;
  readonly #connection: Connection | undefined;
  readonly #logger: Logger;
  readonly #redactor: Redactor;
  readonly #basePath: string;
  readonly #refreshEvery: number;
  readonly #views: Record<Role, View> | undefined;
  readonly #queues = new Map<string, { queue: Queue; adapters: Record<Role, TaskAdapter> }>();
  #problem: CarillonError | undefined = unreachable();
  #writeProblem: CarillonError | undefined;
  /** Whether its Redis user may only read. Checked once, because Redis logs each refusal. */
  #onlyLooks = false;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: BoardOptions) {
    const { client, store, connection, logger, redactor, site, refreshEvery = 3_000 } = options;
    this.#client = client;
    this.#store = store;
    this.#connection = connection;
    this.#logger = logger;
    this.#redactor = redactor;
    this.#basePath = site.basePath;
    this.#refreshEvery = refreshEvery;
    this.#views = connection && forEachRole((role) => boardView(role, site, logger));
  }

  /** Bull Board as a role sees it; undefined: there is none. */
  app(role: Role): Hono<Env> | undefined {
    return this.#views?.[role].app;
  }

  /** Reason why the board cannot answer now, if it cannot. */
  get problem(): CarillonError | undefined {
    const isReady = this.#connection ? this.#connection.status === "ready" : this.#store.ready;
    return this.#problem ?? (isReady ? undefined : unreachable());
  }

  /** Reason why Redis accepts no writes now, if that is so: nothing is scheduled meanwhile, and the board is read-only. */
  get writeProblem(): CarillonError | undefined {
    return this.#writeProblem;
  }

  /** Looks for new queues now, every few seconds, and after each reconnect to Redis. */
  start(): void {
    const loop = async () => {
      await this.refresh();
      if (!this.#closed) this.#timer = setTimeout(() => void loop(), this.#refreshEvery);
    };
    this.#connection?.on("ready", () => void this.refresh());
    void loop();
  }

  /** Adds new queues, and removes deleted ones. Never throws; calls do not overlap. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    try {
      const names = new Set(await this.#store.registry.queues());
      for (const name of this.#queues.keys()) if (!names.has(name)) await this.#drop(name);
      for (const name of this.#views ? names : [])
        if (!this.#queues.has(name) && !this.#closed) await this.#add(name);
      if (this.#problem) this.#logger.info({ queues: names.size }, "the board is ready");
      this.#problem = undefined;
      await this.#findWriteProblem();
    } catch (error) {
      const problem = coded(error);
      if (this.#closed) return;
      if (problem.code !== this.#problem?.code) {
        const { code, message } = problem;
        this.#logger.error({ code, error: message }, "the board could not be updated");
      }
      this.#problem = problem;
    }
  }

  async #findWriteProblem(): Promise<void> {
    if (this.#onlyLooks) return;
    const problem = await this.#store.registry.assertWritable().then(() => undefined, coded);
    this.#onlyLooks = problem?.code === "REDIS_AUTH";
    const found = this.#onlyLooks ? undefined : problem;
    if (found && found.message !== this.#writeProblem?.message && !this.#closed) {
      this.#logger.error({ code: found.code, error: found.message }, "Redis accepts no writes");
    }
    if (!found && this.#writeProblem) this.#logger.info({}, "Redis accepts writes again");
    this.#writeProblem = found;
  }

  async #add(name: string): Promise<void> {
    // A queue whose connection is not ready waits for it, and one that failed to become ready never recovers.
    if (this.#connection?.status !== "ready") throw unreachable();
    const queue = new BoardQueue(name, {
      connection: this.#connection,
      prefix: bullPrefix(this.#client.namespace, name),
      skipMetasUpdate: true, // the board writes nothing into a queue that it shows
    });
    queue.on("error", (error) => this.#logger.debug({ queue: name, error: error.message }, "queue"));
    try {
      await queue.waitUntilReady();
    } catch (error) {
      await queue.close();
      throw error;
    }
    const adapters = forEachRole(
      (role) => new TaskAdapter(queue, this.#client, this.#store, this.#redactor, role, this.#basePath),
    );
    this.#queues.set(name, { queue, adapters });
    this.#showInOrder();
    this.#logger.info({ queue: name }, "queue added");
  }

  /** Sorts the queues, because Bull Board shows them in the order in which it got them. */
  #showInOrder(): void {
    const sorted = [...this.#queues].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [name, { adapters }] of sorted) {
      for (const role of ROLES) {
        this.#views?.[role].removeQueue(name);
        this.#views?.[role].addQueue(adapters[role]);
      }
    }
  }

  async #drop(name: string): Promise<void> {
    for (const role of ROLES) this.#views?.[role].removeQueue(name);
    await this.#queues.get(name)?.queue.close();
    this.#queues.delete(name);
    this.#logger.info({ queue: name }, "queue removed");
  }

  /** Leaves the connection open, because it belongs to the caller. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.close()));
  }
}

function forEachRole<T>(make: (role: Role) => T): Record<Role, T> {
  return Object.fromEntries(ROLES.map((role) => [role, make(role)])) as Record<Role, T>;
}
