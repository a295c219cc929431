// npm run docs:pictures: photographs the console of `npm start`, in light and dark, for the pages. They are kept in git because GitHub and npm show
// some of them, and because docs:build then needs no browser and no Redis. A release makes them again.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { chromiumBinary } from "../lib/chromium.mjs";
import { main, root, say, Trouble } from "../lib/project.mjs";
import { redisBinary, setUp } from "../lib/setup.mjs";

const FOLDER = join(root, "docs/img/console");
const LARGEST_KB = 100;
/** Address, the headline to wait for, and the height. @type {Record<string, [string, string, number]>} */
const PICTURES = {
  now: ["/?span=1h", "Now", 800],
  task: ["/tasks/backups/system/backup", "backup", 800],
  system: ["/system", "System", 600],
};
/** In ms, after the start of the demo: its faults show, and its filled past hour has been run. */
const AGE = 90_000;

await main(async () => {
  await setUp();
  const executablePath = await chromiumBinary();
  if (!executablePath) throw new Trouble("pictures need Chromium: name it in CARILLON_CHROMIUM.");
  process.env.CARILLON_REDIS_SERVER = await redisBinary();
  const { startRedis } = await import("@carillon/testing");
  const redis = await startRedis({ appendonly: true });
  const demo = spawn(process.execPath, [join(root, "apps/demo/dist/main.js")], {
    env: { ...process.env, REDIS_URL: redis.url, CARILLON_CONSOLE_PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const signIn = await consoleOf(demo);
    await new Promise((resolve) => setTimeout(resolve, AGE));
    const page = await browser.newPage({ timezoneId: "UTC", reducedMotion: "reduce" });
    page.setDefaultTimeout(60_000);
    await page.goto(signIn);
    const session = await page.context().newCDPSession(page);
    mkdirSync(FOLDER, { recursive: true });
    for (const [name, [path, title, height]] of Object.entries(PICTURES)) {
      await page.setViewportSize({ width: 1_280, height });
      await page.goto(new URL(path, signIn).href);
      await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
      await page.locator("main .loading").first().waitFor({ state: "detached" });
      for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
        await page.emulateMedia({ colorScheme });
        const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 80 });
        const file = join(FOLDER, `${name}-${colorScheme}.webp`);
        writeFileSync(file, Buffer.from(data, "base64"));
        const kb = Math.ceil(statSync(file).size / 1_000);
        if (kb > LARGEST_KB) throw new Trouble(`${file} has ${kb} kB, more than ${LARGEST_KB}.`);
        say(`${file}: ${kb} kB`);
      }
    }
    return 0;
  } finally {
    await browser.close();
    demo.kill();
    if (demo.exitCode === null) await once(demo, "exit");
    await redis.stop();
  }
});

/** The address at which the demo's console signs in. */
async function consoleOf(demo) {
  const lines = createInterface({ input: demo.stdout });
  for await (const line of lines) {
    const [, address] = /Console: (http\S+)/.exec(line) ?? [];
    if (!address) continue;
    demo.stdout.resume();
    return address;
  }
  throw new Trouble("the demo ended before its console could be reached.");
}
