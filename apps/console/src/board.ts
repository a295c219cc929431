import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { createBullBoard } from "@bull-board/api";
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardRequest,
  ControllerHandlerReturnType,
  UIConfig,
} from "@bull-board/api/typings/app";
import { ExpressAdapter } from "@bull-board/express";
import { ALERTS_QUEUE, bullPrefix, type CarillonError, type Client, type connect } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import type { Queue } from "bullmq";
import express, { type RequestHandler } from "express";
import type { Logger } from "pino";
import { jsonBody } from "./api/body.js";
import { ROLES, type Role } from "./auth.js";
import { BoardQueue } from "./board-queue.js";
import { boardErrorBody, coded, logFailure, unreachable } from "./errors.js";
import { KEPT_FOR_AN_HOUR } from "./headers.js";
import { BOARD_PATH } from "./paths.js";
import { hostsOnly, type Redactor } from "./redact.js";
import { answered } from "./refusals.js";
import { TaskAdapter } from "./task-adapter.js";

export type Connection = ReturnType<typeof connect>;

export interface BoardOptions {
  client: Client;
  store: Store;
  /** Shared by all queues. Of the profile "safe", so that an operator's command is never sent twice. */
  connection: Connection;
  logger: Logger;
  redactor: Redactor;
  /** How often the list of queues is read, in ms; default 3,000. */
  refreshEvery?: number | undefined;
}

/** Bull Board over all queues of the namespace, once for each role. */
export class Board {
  readonly #client: Client;
  readonly #store: Store;
  readonly #connection: Connection;
  readonly #logger: Logger;
  readonly #redactor: Redactor;
  readonly #refreshEvery: number;
  readonly #views: Record<Role, View>;
  readonly #queues = new Map<string, { queue: Queue; adapters: Record<Role, TaskAdapter> }>();
  #problem: CarillonError | undefined = unreachable();
  #writeProblem: CarillonError | undefined;
  /** Whether its Redis user may only read. Checked once, because Redis logs each refusal. */
  #onlyLooks = false;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ client, store, connection, logger, redactor, refreshEvery = 3_000 }: BoardOptions) {
    this.#client = client;
    this.#store = store;
    this.#connection = connection;
    this.#logger = logger;
    this.#redactor = redactor;
    this.#refreshEvery = refreshEvery;
    this.#views = forEachRole((role) => view(role, logger, redactor));
  }

  router(role: Role): RequestHandler {
    return this.#views[role].router;
  }

  /** Why the board cannot answer now, if it cannot. */
  get problem(): CarillonError | undefined {
    if (this.#connection.status === "ready") return this.#problem;
    return this.#problem ?? unreachable();
  }

  /** Why Redis accepts no writes now, if so: nothing is scheduled then, and the board is read-only. */
  get writeProblem(): CarillonError | undefined {
    return this.#writeProblem;
  }

  /** Looks for queues now and every few seconds, and whenever Redis is back. */
  start(): void {
    const loop = async () => {
      await this.refresh();
      if (!this.#closed) this.#timer = setTimeout(() => void loop(), this.#refreshEvery);
    };
    this.#connection.on("ready", () => void this.refresh());
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
      const names = new Set(await this.#client.queues.names());
      for (const name of this.#queues.keys()) if (!names.has(name)) await this.#drop(name);
      for (const name of names) if (!this.#queues.has(name) && !this.#closed) await this.#add(name);
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
    if (!found && this.#writeProblem) this.#logger.info("Redis accepts writes again");
    this.#writeProblem = found;
  }

  async #add(name: string): Promise<void> {
    // A queue whose connection is not ready waits for it, and one that failed to become ready never recovers.
    if (this.#connection.status !== "ready") throw unreachable();
    const queue = new BoardQueue(name, {
      connection: this.#connection,
      prefix: bullPrefix(this.#client.namespace, name),
      skipMetasUpdate: true, // looking at a queue writes nothing
    });
    queue.on("error", (error) => this.#logger.debug({ queue: name, error: error.message }, "queue"));
    try {
      await queue.waitUntilReady();
    } catch (error) {
      await queue.close();
      throw error;
    }
    const adapters = forEachRole(
      (role) => new TaskAdapter(queue, this.#client, this.#store, this.#redactor, role),
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
        this.#views[role].removeQueue(name);
        this.#views[role].addQueue(adapters[role]);
      }
    }
  }

  async #drop(name: string): Promise<void> {
    for (const role of ROLES) this.#views[role].removeQueue(name);
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

interface View {
  router: RequestHandler;
  addQueue(adapter: TaskAdapter): void;
  removeQueue(name: string): void;
}

function view(role: Role, logger: Logger, redactor: Redactor): View {
  const adapter = new BoardAdapter(role, logger, redactor).setBasePath(BOARD_PATH) as BoardAdapter;
  const { addQueue, removeQueue } = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: { uiConfig: uiConfig(role) },
  });
  const router = adapter.getRouter();
  router.disable("x-powered-by");
  return { router, addQueue, removeQueue };
}

/** Bull Board's Express adapter, with our errors and without fonts from other sites. */
class BoardAdapter extends ExpressAdapter {
  readonly #role: Role;
  readonly #logger: Logger;

  constructor(role: Role, logger: Logger, redactor: Redactor) {
    super();
    this.#role = role;
    this.app.set("json replacer", redactor.replacer);
    this.#logger = logger;
  }

  override setStaticPath(route: string, path: string): this {
    const setHeaders = (res: ServerResponse) => void res.setHeader("Cache-Control", KEPT_FOR_AN_HOUR);
    this.app.get(`${route}/locales/:language/messages.json`, async (req, res, next) => {
      const { language } = req.params;
      if (!/^[\w-]{2,10}$/.test(language)) return next();
      const text = await readFile(join(path, "locales", language, "messages.json"), "utf8").catch(
        () => undefined,
      );
      if (text === undefined) return next();
      setHeaders(res);
      res.json(withOurQuestion(JSON.parse(text) as PageTexts));
    });
    this.app.use(route, express.static(path, { setHeaders }));
    return this;
  }

  override setEntryRoute({ route, handler }: AppViewRoute): this {
    this.app.get(route, (_req, res, next) => {
      const { name, params } = handler({ basePath: this.basePath, uiConfig: this.uiConfig });
      res.render(name, params, (error: unknown, html: string) => {
        if (error) next(error);
        else res.send(html.replace(FOREIGN_FONTS, ""));
      });
    });
    return this;
  }

  /** Bull Board's own refusals have a key of its page's texts and no code; this adds the code for programs. */
  override setApiRoutes(routes: AppControllerRoute[]): this {
    // Before Bull Board's own parser, whose limit of 100 KB is too small for payloads.
    this.app.use("/api", jsonBody);
    return super.setApiRoutes(
      routes.map((route) => ({
        ...route,
        handler: async (request) => {
          const asked = request && route.route === PAUSE_ALL ? withoutAlerts(request) : request;
          const answer = answered(await route.handler(asked));
          return this.#role === "viewer" ? { ...answer, body: hostsOnly(answer.body) as object } : answer;
        },
      })),
    ) as this;
  }

  /** Bull Board answers every error with 500; this uses the status of ours. */
  override setErrorHandler(): this {
    return super.setErrorHandler((thrown) => {
      const error = coded(thrown);
      if (error.code === "INTERNAL") logFailure(this.#logger, thrown);
      return {
        status: error.statusCode,
        body: boardErrorBody(error),
      } as unknown as ControllerHandlerReturnType;
    });
  }
}

interface PageTexts {
  readonly SCHEDULERS?: { readonly CONFIRM?: object };
}

/** Bull Board asks as if schedulers were its own. Ours take their history with them, and no application brings them back by itself. */
const REMOVE =
  'Delete task "{{id}}" with its run records, statistics and ledger? Runs that are queued or running go on. This cannot be undone: ' +
  "to keep the history, pause the task instead.";

function withOurQuestion(texts: PageTexts): PageTexts {
  const { SCHEDULERS } = texts;
  return { ...texts, SCHEDULERS: { ...SCHEDULERS, CONFIRM: { ...SCHEDULERS?.CONFIRM, REMOVE } } };
}

const PAUSE_ALL = "/api/queues/pause";

/** Excludes the queue of alerts from a pause of all queues: alerts must be delivered when nothing runs. */
function withoutAlerts(request: BullBoardRequest): BullBoardRequest {
  const queues = new Map(request.queues);
  queues.delete(ALERTS_QUEUE);
  return { ...request, queues };
}

const FOREIGN_FONTS = /<link[^>]+fonts\.googleapis\.com[^>]*>/;

function uiConfig(role: Role): UIConfig {
  return {
    boardTitle: "Carillon",
    boardLogo: { path: "/carillon.svg", width: 28, height: 28 },
    favIcon: { default: "/carillon.svg", alternative: "/carillon.svg" },
    hideDocsLink: true,
    miscLinks: [{ text: "Sign out", url: "/logout" }],
    theme: { light: FONTS, dark: FONTS },
    ...(role === "admin"
      ? {}
      : { environment: { label: LABELS[role], color: "#8a6d1d", textColor: "#fff" } }),
  };
}

const LABELS = { viewer: "read-only", operator: "operator" } as const;

const FONTS = {
  "font-sans": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
  "font-mono": "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
};
