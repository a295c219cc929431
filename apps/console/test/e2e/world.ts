import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Scheduler } from "@carillon/scheduler";
import { type AnyTaskType, type Context, defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { z } from "zod";
import { ADMIN, type Console, OPERATOR, startConsole, VIEWER } from "../harness.js";

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {} };
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
export const SCREENSHOTS = fileURLToPath(new URL("../../../../.carillon/screenshots/", import.meta.url));
const TOKENS = { admin: ADMIN, operator: OPERATOR, viewer: VIEWER };
const payload = z.object({});

/** Handlers of the tests: they do what their names say. `slow` ends when it is cancelled, or told to. */
const TYPES: readonly AnyTaskType[] = [
  defineTask("ok", { queue: "q", payload, handler: async () => ({ done: true }) }),
  defineTask("bad", {
    ...{ queue: "q", payload },
    handler: async () => {
      throw new Error("<b>the disk</b> is full");
    },
  }),
  defineTask("slow", {
    ...{ queue: "q", payload },
    async handler(_: unknown, { log, signal }: Context) {
      log("slow work begins");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    },
  }),
];

export interface World extends Console {
  /** Signs in with a new browser context. */
  as(role: keyof typeof TOKENS, options?: Parameters<Browser["newContext"]>[0]): Promise<Visit>;
}

/** A page of a person who is signed in. */
interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Opens an address of the console, and waits until it shows data. */
  go(path: string): Promise<void>;
  /** Serious findings of axe on the page as it is. */
  axe(): Promise<string[]>;
}

/** A console with a node, a worker and a browser. */
export async function startWorld(binary: string): Promise<World> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  const console_ = await startConsole();
  const common = { connection: console_.redis.url, namespace: console_.client.namespace, logger: SILENT };
  const scheduler = new Scheduler({ ...common, nodeId: "node-1", unsafeRedis: "warn" } as never);
  const worker = new Worker({ ...common, types: TYPES, concurrency: 20 } as never);
  await Promise.all([scheduler.start(), worker.start()]);
  const browser = await chromium.launch({ executablePath: binary, args: ["--no-sandbox"] });
  await eventually(async () => (await console_.client.nodes.list()).some(({ ready }) => ready));
  return {
    ...console_,
    as: (role, options) => visit(browser, console_.url, TOKENS[role], options),
    async stop() {
      await browser.close();
      await Promise.all([scheduler.stop(), worker.stop()]);
      await console_.stop();
    },
  };
}

/** In the page: serious findings as texts. */
const FINDINGS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(
  violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | "))))`;

/** Problems of pages that must not be there: violations of the CSP, and uncaught errors. */
export const problems: string[] = [];

async function visit(
  browser: Browser,
  url: string,
  token: string,
  options: Parameters<Browser["newContext"]>[0],
): Promise<Visit> {
  const context = await browser.newContext(options);
  await context.exposeFunction("reportViolation", (what: string) => void problems.push(what));
  await context.addInitScript({
    content: `document.addEventListener("securitypolicyviolation", (event) => {
      reportViolation(location.pathname + ": " + event.violatedDirective + " " + event.blockedURI);
    });`,
  });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  page.on("pageerror", (error) => void problems.push(`${page.url()}: ${error.message}`));
  await page.goto(`${url}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Now" }).waitFor();
  return {
    ...{ page, context },
    async go(path) {
      await page.goto(url + path);
      await page.locator("main h1").waitFor();
      await eventually(async () => (await page.locator("main .loading").count()) === 0);
    },
    async axe() {
      // As a script of its own world, it is no business of the page's CSP.
      const session = await context.newCDPSession(page);
      await session.send("Runtime.evaluate", { expression: readFileSync(AXE, "utf8") });
      const { result } = await session.send("Runtime.evaluate", {
        expression: FINDINGS,
        ...{ awaitPromise: true, returnByValue: true },
      });
      await session.detach();
      return JSON.parse(String(result.value)) as string[];
    },
  };
}
