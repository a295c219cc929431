import { createBullBoard } from "@bull-board/api";
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardRequest,
  ControllerHandlerReturnType,
  UIConfig,
} from "@bull-board/api/typings/app";
import { HonoAdapter } from "@bull-board/hono";
import type { Logger } from "@carillon/sdk";
import { ALERTS_QUEUE, type TokenRole } from "@carillon/sdk/internal";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { jsonBody } from "./api/body.js";
import { type Env, type Middleware, pathReader, type Site } from "./context.js";
import { boardErrorBody, coded, errorHandler, logFailure, notFound } from "./errors.js";
import { KEPT_FOR_AN_HOUR } from "./headers.js";
import { BOARD_PATH } from "./paths.js";
import { answered } from "./refusals.js";
import type { TaskAdapter } from "./task-adapter.js";

/** Bull Board as one role sees it. */
export interface View {
  readonly app: Hono<Env>;
  addQueue(adapter: TaskAdapter): void;
  removeQueue(name: string): void;
}

export function boardView(role: TokenRole, site: Site, logger: Logger): View {
  const adapter = new BoardAdapter(site, logger).setBasePath(BOARD_PATH);
  const { addQueue, removeQueue } = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: { uiConfig: uiConfig(role, site) },
  });
  const app = new Hono<Env>({ getPath: pathReader(site.basePath) });
  app.use(async (c, next) => {
    c.set("site", site);
    await next();
  });
  app.get(`${BOARD_PATH}/*`, ourFiles);
  // Registered before the adapter, which accepts any body of any size.
  app.use(`${BOARD_PATH}/api/*`, jsonBody);
  app.route(BOARD_PATH, adapter.registerPlugin());
  app.get(`${BOARD_PATH}/*`, notFound);
  app.notFound(notFound);
  app.onError(errorHandler(logger));
  return { app, addQueue, removeQueue };
}

/** Bull Board's page without fonts from other sites, and its texts with our question. */
const ourFiles: Middleware = async (c, next) => {
  await next();
  if (!c.res.ok) return;
  const { res } = c;
  const { path } = c.req;
  if (res.headers.get("content-type")?.startsWith("text/html")) {
    c.res = undefined;
    c.res = c.html((await res.text()).replace(FOREIGN_FONTS, ""));
  } else if (/\/locales\/[^/]+\/messages\.json$/.test(path)) {
    c.res = undefined;
    c.res = c.json(withOurQuestion((await res.json()) as PageTexts));
    c.res.headers.delete("Content-Length");
  }
  if (path.startsWith(`${BOARD_PATH}/static/`)) c.header("Cache-Control", KEPT_FOR_AN_HOUR);
};

/** Bull Board's Hono adapter with our errors. */
class BoardAdapter extends HonoAdapter {
  readonly #site: Site;
  readonly #logger: Logger;

  constructor(site: Site, logger: Logger) {
    super(serveStatic);
    this.#site = site;
    this.#logger = logger;
  }

  /** Bull Board's own refusals have a key of its page's texts and no code; this adds the code for programs. */
  override setApiRoutes(routes: readonly AppControllerRoute[]): this {
    return super.setApiRoutes(
      routes.map((route) => ({
        ...route,
        handler: async (request) => {
          const asked = request && route.route === PAUSE_ALL ? withoutAlerts(request) : request;
          const answer = answered(await route.handler(asked));
          return { ...answer, body: this.#redacted(answer.body) };
        },
      })),
    );
  }

  #redacted(body: unknown): object {
    const { replacer } = this.#site;
    return (replacer ? JSON.parse(JSON.stringify(body, replacer)) : body) as object;
  }

  override setEntryRoute(entry: AppViewRoute): this {
    const basePath = this.#site.basePath + BOARD_PATH;
    const handler: AppViewRoute["handler"] = ({ uiConfig }) => entry.handler({ basePath, uiConfig });
    return super.setEntryRoute({ ...entry, handler });
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

/**
 * Bull Board's question describes its own schedulers. Ours are deleted with their history, and no application puts them
 * back automatically.
 */
const REMOVE =
  'Delete task "{{id}}" with its run records, statistics and skips? Runs that are queued or running go on. Only the definition can be restored, for 7 days: ' +
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

function uiConfig(role: TokenRole, { basePath, signsIn }: Site): UIConfig {
  return {
    boardTitle: "Carillon",
    boardLogo: { path: `${basePath}/carillon.svg`, width: 28, height: 28 },
    favIcon: { default: `${basePath}/carillon.svg`, alternative: `${basePath}/carillon.svg` },
    hideDocsLink: true,
    miscLinks: [
      { text: "Tasks", url: `${basePath}/tasks` },
      ...(signsIn ? [{ text: "Sign out", url: `${basePath}/logout` }] : []),
    ],
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
