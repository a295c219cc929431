import { eventually } from "@carillon/testing";
import type { Page, Request, Route } from "playwright-core";
import { gate } from "../../../../test/helpers.js";

const API = /\/api\/v1\/(?!events|me\b)/;

/** Script for the page: what it says of its present question, outside of what is dimmed, and whether something waits. */
const CLAIMS = `(() => {
  const free = (of) => [...document.querySelectorAll(of)].filter((one) => !one.closest("[inert]"));
  const texts = (of) => free(of).map(({ textContent }) => textContent.trim());
  return {
    waits: document.querySelector("main :is([aria-busy=true], .loading)") !== null,
    title: texts("main h1").join(),
    rows: free("main [data-row]").map((row) => row.textContent.trim() + " " + row.getAttribute("href")),
    counts: texts("main .chip").filter((text) => /\\d$/.test(text)),
    chosen: [
      ...texts("main .bulk strong"),
      ...texts("main button").filter((text) => /^Run \\d+ runs? again$/.test(text)),
      ...free("main input[type=checkbox]:checked[aria-label^=Select]").map((box) => box.ariaLabel),
    ],
  };
})()`;

interface Claims {
  readonly waits: boolean;
  readonly title: string;
  readonly rows: readonly string[];
  readonly counts: readonly string[];
  readonly chosen: readonly string[];
}

/** Answers that wait until they are let go: those of a slow network, without its time. */
export class Stall {
  readonly page: Page;
  #gate = gate();
  /** Questions that wait for their answers. */
  readonly asked = new Set<Route>();
  /** Questions that were answered before: until they are again, that answer is shown. */
  readonly #known = new Set<string>();

  private constructor(page: Page) {
    this.page = page;
    this.#gate.resolve();
  }

  static async on(page: Page): Promise<Stall> {
    const stall = new Stall(page);
    await page.route(API, async (route) => {
      stall.asked.add(route);
      await stall.#gate.promise;
      await route.continue().catch(() => {});
    });
    const done = (request: Request) => {
      stall.#known.add(request.url());
      for (const route of stall.asked) if (route.request() === request) stall.asked.delete(route);
    };
    page.on("requestfinished", done);
    page.on("requestfailed", done);
    return stall;
  }

  get asksNew(): boolean {
    return [...this.asked].some((route) => !this.#known.has(route.request().url()));
  }

  hold(): void {
    this.#gate = gate();
  }

  async release(): Promise<void> {
    this.#gate.resolve();
    await eventually(async () => this.asked.size === 0 && !(await this.claims()).waits);
  }

  async claims(): Promise<Claims> {
    return (await this.page.evaluate(CLAIMS)) as Claims;
  }

  async end(): Promise<void> {
    this.#gate.resolve();
    await this.page.unrouteAll({ behavior: "ignoreErrors" });
  }
}

/**
 * Acts while all answers wait.
 * @returns what the page said meanwhile that was not so when they had come, and choices of rows of a former question
 */
export async function unsaid(
  stall: Stall,
  name: string,
  act: () => Promise<unknown>,
): Promise<readonly string[]> {
  const before = await stall.claims();
  stall.hold();
  await act();
  // Two frames: the page's reaction, and that to what it asks.
  await stall.page.evaluate(
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
  );
  const during = await stall.claims();
  const asks = stall.asksNew;
  await stall.release();
  const after = await stall.claims();
  const gone = (part: "rows" | "counts") => during[part].filter((text) => !after[part].includes(text));
  return [
    ...(asks && !during.waits && String(during.rows) !== String(after.rows)
      ? ["nothing says that it waits"]
      : []),
    ...(during.title === before.title && after.title !== before.title ? [`title ${before.title}`] : []),
    ...[...gone("rows"), ...gone("counts")],
    ...(asks ? [...during.chosen, ...after.chosen].map((text) => `chosen: ${text}`) : []),
  ].map((text) => `${name}: ${text}`);
}

/** Loses the first answer to each question, until its page is asked for the next time. @returns the questions */
export async function losing(page: Page): Promise<ReadonlySet<string>> {
  await page.clock.install();
  const lost = new Set<string>();
  await page.route(/\/api\/v1\/(?!events)/, async (route) => {
    const request = route.request();
    const question = `${request.method()} ${page.url()} ${request.url()} ${request.postData()}`;
    if (lost.has(question)) return route.continue().catch(() => {});
    lost.add(question);
    return route.abort("connectionreset").catch(() => {});
  });
  return lost;
}

/** Lets the page's time pass until nothing of it waits, or says that it could not be read. */
export async function settled(page: Page): Promise<string> {
  const state = () =>
    page
      .evaluate<string>(
        `document.querySelector("main h1") === null ? "none"
          : document.querySelector("main :is(.loading, [aria-busy=true])") ? "waits"
          : document.querySelector("main [role=alert]")?.textContent ?? "whole"`,
      )
      .catch(() => "none");
  for (let n = 0; n < 200; n++) {
    const is = await state();
    if (is === "whole") return is;
    await page.clock.fastForward(1_000).catch(() => {});
  }
  return state();
}
