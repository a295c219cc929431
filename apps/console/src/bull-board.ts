import type { Redactor } from "@carillon/ops/internal";
import { bullPrefix, type CarillonError, type Client, type Logger } from "@carillon/sdk";
import { type Store, TOKEN_ROLES, type TokenRole } from "@carillon/sdk/internal";
import type { Queue } from "bullmq";
import type { Hono } from "hono";
import { BoardQueue } from "./bull-board-queue.js";
import { boardView, type View } from "./bull-board-view.js";
import type { Env, Site } from "./context.js";
import { coded, unreachable } from "./errors.js";
import { TaskAdapter } from "./task-adapter.js";

export interface BoardOptions {
  client: Client;
  store: Store;
  logger: Logger;
  redactor: Redactor;
  site: Site;
  /** Interval in ms at which the list of queues is read; default 3,000. */
  refreshEvery?: number | undefined;
}

/** Bull Board over all queues of the namespace, once for each role. */
export class Board {
  readonly #parts: BoardOptions;
  /** Shared by all queues. Of the profile "safe", so that an operator's command is never sent twice. */
  #connection: ReturnType<Store["connect"]> | undefined;
  readonly #views: Record<TokenRole, View> | undefined;
  readonly #queues = new Map<string, { queue: Queue; adapters: Record<TokenRole, TaskAdapter> }>();
  #problem: CarillonError | undefined = unreachable();
  /** Code of the problem that was logged. */
  #logged: string | undefined;
  #unwatch = () => {};
  #writeProblem: CarillonError | undefined;
  /** Whether its Redis user may only read. Checked once, because Redis logs each refusal. */
  #onlyLooks = false;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: BoardOptions) {
    const { site, logger } = options;
    this.#parts = options;
    this.#views = site.bullBoard ? forEachRole((role) => boardView(role, site, logger)) : undefined;
  }

  /** Bull Board as a role sees it; undefined: there is none. */
  app(role: TokenRole): Hono<Env> | undefined {
    return this.#views?.[role].app;
  }

  /** Reason why the board cannot answer now, if it cannot. */
  get problem(): CarillonError | undefined {
    const isReady = this.#views ? this.#connection?.status === "ready" : this.#parts.store.ready;
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
      if (!this.#closed) this.#timer = setTimeout(() => void loop(), this.#parts.refreshEvery ?? 3_000);
    };
    this.#unwatch = this.#parts.store.watch({
      lost: (error) => this.#fail(error),
      back: () => void this.refresh(),
    });
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
      const names = new Set(await this.#parts.store.registry.queues());
      if (this.#views && !this.#closed) this.#connection ??= this.#connect();
      for (const name of this.#queues.keys()) if (!names.has(name)) await this.#drop(name);
      for (const name of this.#views ? names : [])
        if (!this.#queues.has(name) && !this.#closed) await this.#add(name);
      if (this.#problem) this.#parts.logger.info({ queues: names.size }, "the board is ready");
      this.#problem = undefined;
      this.#logged = undefined;
      await this.#findWriteProblem();
    } catch (error) {
      this.#fail(coded(error));
    }
  }

  #fail(problem: CarillonError): void {
    if (this.#closed) return;
    const { code, message } = problem;
    if (code !== this.#logged)
      this.#parts.logger.error({ code, error: message }, "the board could not be updated");
    this.#logged = code;
    this.#problem = problem;
  }

  #connect(): ReturnType<Store["connect"]> {
    const connection = this.#parts.store.connect("safe");
    // The store's connection logs the same.
    connection.on("error", () => {});
    connection.on("ready", () => void this.refresh());
    return connection;
  }

  async #findWriteProblem(): Promise<void> {
    if (this.#onlyLooks) return;
    const problem = await this.#parts.store.registry.assertWritable().then(() => undefined, coded);
    this.#onlyLooks = problem?.code === "REDIS_AUTH";
    const found = this.#onlyLooks ? undefined : problem;
    if (found && found.message !== this.#writeProblem?.message && !this.#closed)
      this.#parts.logger.error({ code: found.code, error: found.message }, "Redis accepts no writes");
    if (!found && this.#writeProblem) this.#parts.logger.info({}, "Redis accepts writes again");
    this.#writeProblem = found;
  }

  async #add(name: string): Promise<void> {
    // A queue whose connection is not ready waits for it, and one that failed to become ready never recovers.
    if (this.#connection?.status !== "ready") throw unreachable();
    const queue = new BoardQueue(name, {
      connection: this.#connection,
      prefix: bullPrefix(this.#parts.client.namespace, name),
      skipMetasUpdate: true, // the board writes nothing into a queue that it shows
    });
    queue.on("error", (error) => this.#parts.logger.debug({ queue: name, error: error.message }, "queue"));
    try {
      await queue.waitUntilReady();
    } catch (error) {
      await queue.close();
      throw error;
    }
    const adapters = forEachRole((role) => new TaskAdapter(queue, this.#parts, role));
    this.#queues.set(name, { queue, adapters });
    this.#showInOrder();
    this.#parts.logger.info({ queue: name }, "queue added");
  }

  /** Sorts the queues, because Bull Board shows them in the order in which it got them. */
  #showInOrder(): void {
    const sorted = [...this.#queues].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [name, { adapters }] of sorted) {
      for (const role of TOKEN_ROLES) {
        this.#views?.[role].removeQueue(name);
        this.#views?.[role].addQueue(adapters[role]);
      }
    }
  }

  async #drop(name: string): Promise<void> {
    for (const role of TOKEN_ROLES) this.#views?.[role].removeQueue(name);
    await this.#queues.get(name)?.queue.close();
    this.#queues.delete(name);
    this.#parts.logger.info({ queue: name }, "queue removed");
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#unwatch();
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.close()));
    this.#connection?.disconnect();
  }
}

function forEachRole<T>(make: (role: TokenRole) => T): Record<TokenRole, T> {
  return Object.fromEntries(TOKEN_ROLES.map((role) => [role, make(role)])) as Record<TokenRole, T>;
}
