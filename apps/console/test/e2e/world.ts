import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { type AnyTaskType, type Context, defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { type Browser, chromium, type Page } from "playwright-core";
import { z } from "zod";
import { ADMIN, type Console, OPERATOR, startConsole, VIEWER } from "../harness.js";
import { MARKED_TYPE } from "./markup.js";

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {} };
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const TOKENS = { admin: ADMIN, operator: OPERATOR, viewer: VIEWER };
const payload = z.object({});

/** Handlers of the tests: their names say what they do. `slow` ends when it is cancelled or released. */
const TYPES: readonly AnyTaskType[] = [
  defineTask("ok", { queue: "q", payload, handler: async () => ({ done: true }) }),
  defineTask("bad", {
    queue: "q",
    payload,
    handler: async () => {
      throw new Error("<b>the disk</b> is full");
    },
  }),
  defineTask("invoices", {
    queue: "q",
    payload,
    generate: () => Array.from({ length: 40 }, (_, n) => ({ customer: `cust-${n}` })),
    process: ({ customer }: { customer: string }) => {
      if (customer === "cust-7") throw new Error("no address");
    },
  }),
  defineTask("slow", {
    queue: "q",
    payload,
    async handler(_: unknown, { log, signal }: Context) {
      log("slow work begins");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    },
  }),
  defineTask("letter", {
    queue: "q",
    payload: z.object({
      text: z.string().describe("Its first line."),
      copies: z.int().default(1),
      paper: z.enum(["a4", "a3"]),
      to: z.object({ names: z.array(z.string()), home: z.boolean().optional() }),
    }),
    handler: async () => {},
  }),
  MARKED_TYPE,
];

export interface World extends Console {
  /**
   * The page of a person with that role or named token: signed in once, shared by all tests. `again`: a second window of the
   * same person.
   */
  as(who: keyof typeof TOKENS | { secret: string }, again?: "again"): Promise<Visit>;
}

/** A page of a person who is signed in. Its time zone is UTC. */
export interface Visit {
  readonly page: Page;
  /** Opens an address of the console, and waits until it shows data. */
  go(path: string): Promise<void>;
  /** Shows the open page in another width or theme. */
  show(look: { size: keyof typeof SIZES | Size; colorScheme?: "light" | "dark" }): Promise<void>;
  /** Serious axe findings on the page as it is now. */
  axe(): Promise<string[]>;
}

interface Size {
  readonly width: number;
  readonly height: number;
}
const SIZES = { phone: { width: 320, height: 700 }, desktop: { width: 1_280, height: 860 } };

interface WorldOptions {
  /** Makes an address in front of the console's. */
  behind?: (url: string) => Promise<string>;
  /** Handlers besides the usual ones. */
  types?: readonly AnyTaskType[];
}

/** A console with a node, a worker and a browser. */
export async function startWorld(
  binary: string,
  { behind = async (url) => url, types = [] }: WorldOptions = {},
): Promise<World> {
  const started = await startConsole({ redact: ["password"] });
  const console_ = { ...started, url: await behind(started.url) };
  const common = { connection: console_.redis.url, namespace: console_.client.namespace, logger: SILENT };
  const scheduler = new Scheduler({ ...common, nodeId: "node-1", unsafeRedis: "warn" } as never);
  const worker = new Worker({ ...common, types: [...TYPES, ...types], concurrency: 20 } as never);
  const [browser] = await Promise.all([
    chromium.launch({ executablePath: binary, args: ["--no-sandbox", "--disable-gpu"] }),
    scheduler.start(),
    worker.start(),
  ]);
  await eventually(async () =>
    (await operatorOf(console_.client).nodes.list()).nodes.some(({ ready }) => ready),
  );
  const people = new Map<string, Promise<Visit>>();
  return {
    ...console_,
    as(who, again) {
      const token = typeof who === "string" ? TOKENS[who] : who.secret;
      const window = `${token} ${again}`;
      const known = people.get(window) ?? visit(browser, console_.url, token);
      people.set(window, known);
      return known;
    },
    async stop() {
      await browser.close();
      await Promise.all([scheduler.stop(), worker.stop({ within: 0 })]);
      await console_.stop();
    },
  };
}

/** Script for the page: serious axe findings as texts. */
const FINDINGS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(
  violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | "))))`;
const AXE_TEXT = readFileSync(AXE, "utf8");

/**
 * Problems of pages that must not be there: violations of the CSP, uncaught errors, and dialogs, which only injected
 * script opens.
 */
export const problems: string[] = [];

/**
 * Script for the page: the pointer is on each notice from its first frame until it is moved there and away. On a busy machine
 * the 10 s of a notice pass before a test has seen it.
 */
const HOLD_NOTICES = `new MutationObserver(() => {
  for (const notice of document.querySelectorAll(".notices li:not([data-held])")) {
    notice.dataset.held = "";
    notice.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  }
}).observe(document, { childList: true, subtree: true });`;

const UNSAVED = "What you have entered is not stored. Leave it?";
/** Questions of the pages whether to leave what was entered. They are answered with yes, except one for each page in `staying`. */
export const asked: string[] = [];
export const staying = new Set<Page>();

/** The title of the open page. Panels below it have headings too, and some hold the same word ("Running now"). */
export const titleOf = (page: Page, name: string) =>
  page.getByRole("heading", { name, exact: true, level: 1 });

/** Opens the menu of the page, and picks an item. */
export async function pick(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "More to do" }).click();
  await page.getByRole("menuitem", { name, exact: true }).click();
}

async function visit(browser: Browser, url: string, token: string): Promise<Visit> {
  const context = await browser.newContext({ timezoneId: "UTC", reducedMotion: "reduce" });
  await context.exposeFunction("reportViolation", (what: string) => void problems.push(what));
  await context.addInitScript({
    content: `document.addEventListener("securitypolicyviolation", (event) => {
      reportViolation(location.pathname + ": " + event.violatedDirective + " " + event.blockedURI);
    });`,
  });
  await context.addInitScript({ content: HOLD_NOTICES });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  page.on("pageerror", (error) => void problems.push(`${page.url()}: ${error.message}`));
  page.on("dialog", (dialog) => {
    if (dialog.type() === "beforeunload" || dialog.message() === UNSAVED) {
      asked.push(dialog.type());
      void (staying.delete(page) ? dialog.dismiss() : dialog.accept());
      return;
    }
    problems.push(`${page.url()}: a dialog with ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(`${url}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await titleOf(page, "Now").waitFor();
  const session = await context.newCDPSession(page);
  return {
    page,
    async go(path) {
      await page.goto(url + path);
      await page.locator("main h1").waitFor();
      await page.locator("main .loading").first().waitFor({ state: "detached" });
    },
    async show({ size, colorScheme }) {
      if (colorScheme) await page.emulateMedia({ colorScheme });
      await page.setViewportSize(typeof size === "string" ? SIZES[size] : size);
      // Two frames: layout, then the page's reaction to it.
      await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    },
    async axe() {
      // Sent over the DevTools protocol, so the page's CSP does not apply.
      const { result } = await session.send("Runtime.evaluate", { expression: "typeof axe" });
      if (result.value === "undefined") await session.send("Runtime.evaluate", { expression: AXE_TEXT });
      const { result: found } = await session.send("Runtime.evaluate", {
        expression: FINDINGS,
        awaitPromise: true,
        returnByValue: true,
      });
      return JSON.parse(String(found.value)) as string[];
    },
  };
}
