import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon } from "../../apps/cli/test/helpers.js";
import { startWorld, type Visit, type World } from "../../apps/console/test/e2e/world.js";
import { gate } from "../helpers.js";
import { anything, PATIENCE } from "./harness.js";

const binary = process.env["CARILLON_CHROMIUM"];
const COUNT = 1_000;
const FAILS = COUNT - 1;

const open = gate();
let broken = true;
const MANY = defineTask("many", {
  queue: "q",
  payload: anything,
  generate: () => Array.from({ length: COUNT }, (_, n) => ({ order: `order-${n}` })),
  async process({ order }, { index, log }) {
    await open.promise;
    log(`mailing ${order}`);
    if (broken && index === FAILS) throw new Error(`no paper for ${order}`);
    return { sent: order };
  },
});
const NONE = defineTask("none", {
  queue: "q",
  payload: anything,
  generate: (): number[] => [],
  process: () => null,
});

let world: World;
beforeAll(async () => {
  world = await startWorld(binary!, { types: [MANY, NONE] });
});
afterAll(() => {
  open.resolve();
  return world?.stop();
});

const addressOf = (run: string) => `/runs/${encodeURIComponent(run).replace("%40", "@")}`;
const final = (run: string) =>
  eventually(async () => (await world.client.runs.get(run)).state === "final", PATIENCE);
async function trigger(id: string): Promise<string> {
  const triggered = await world.client.trigger(id);
  if (triggered.outcome !== "enqueued") throw new Error(triggered.outcome);
  return triggered.run;
}

describe("E18 failed items come first on the page of their run", () => {
  it(`${COUNT} items, ${FAILS} fails: it is shown first and done again; the jobs of items lead to the run`, async () => {
    await world.client.put({ id: "many", queue: "q", type: "many", schedule: { every: "365d" } });
    const run = await trigger("many");
    const { page, go } = await world.as("operator");
    const jobs = async () => {
      const { body } = await world.admin(
        "GET",
        "/queues/api/queues?activeQueue=q&status=active&jobsPerPage=20",
      );
      const [queue] = body.queues as unknown as [
        { jobs: { data: { child?: true }; externalUrl?: { href: string } }[] },
      ];
      return queue.jobs.filter(({ data }) => data.child);
    };
    await world.board.refresh();
    await eventually(async () => (await jobs()).length > 0, PATIENCE);
    for (const { externalUrl } of await jobs()) expect(externalUrl?.href).toBe(addressOf(run));
    open.resolve();
    await final(run);

    await go(addressOf(run));
    const items = page.locator("section", { has: page.getByRole("heading", { name: "Items" }) });
    await items.getByText("1 of 1,000 failed").waitFor();
    const first = items.locator("li").first();
    expect(await first.textContent()).toContain(`#${FAILS}`);
    await eventually(async () => expect(await items.locator("li").count()).toBe(501));
    await first.locator("summary").click();
    await first.getByText(`"order": "order-${FAILS}"`).waitFor();
    await first.getByText(`mailing order-${FAILS}`).waitFor();
    broken = false;
    await items.getByRole("button", { name: "Do the failed ones again" }).click();
    await page.waitForURL((url) => !decodeURIComponent(url.pathname).includes(run));
    await page.locator("main h1 + *", { hasText: "succeeded" }).waitFor();
    await items.getByText("0 of 1 failed").waitFor();
    expect(await items.getByRole("button", { name: "Do the failed ones again" }).count()).toBe(0);
  });
});

describe("E19 a run with nothing to do is seen", () => {
  it("three times nothing: list, statistics, pages and Bull Board say when it last checked", async () => {
    await world.client.put({ id: "none", queue: "q", type: "none", schedule: { every: "365d" } });
    for (let n = 0; n < 3; n++) await final(await trigger("none"));
    const env = { REDIS_URL: world.redis.url, CARILLON_NAMESPACE: world.client.namespace };
    const line = async (command: string) => {
      const { stdout } = await carillon([command, "--search", "none"], { env });
      return stdout.split("\n").find((line) => line.includes("system/none"));
    };
    expect(await line("list")).toMatch(/nothing-to-do (now|.* ago)/);
    expect(await line("stats")).toMatch(/nothing-to-do (now|.* ago)/);
    expect((await world.client.get("none")).lastChecked).toBeGreaterThan(0);

    const { page, go } = await world.as("viewer");
    await go("/tasks?search=none");
    const row = page.locator("tr", { hasText: "none" }).last();
    await row.getByText("nothing to do").waitFor();
    expect(await row.textContent()).not.toContain("never ran");
    await go("/tasks/q/system/none");
    await page.getByText("last checked", { exact: false }).first().waitFor();
    expect(await page.locator("main").textContent()).not.toContain("never ran");

    await world.board.refresh();
    const { body } = await world.admin("GET", "/queues/api/job-schedulers");
    const board = body.schedulers?.find(({ id }) => id === "system/none");
    expect(board?.["name"]).toMatch(/nothing to do at \d{4}-/);
    // A run that does something is the last one from then on.
    await world.client.put({ id: "none", queue: "q", type: "ok", schedule: { every: "365d" } });
    await final(await trigger("none"));
    expect(await world.client.get("none")).not.toHaveProperty("lastChecked");
  });
});

describe("E26 support goes through a customer's runs by keyboard", () => {
  it("a read-only token: each run stands beside the list with its error, and its address shows the same to others", async () => {
    const ids = ["first", "second"];
    for (const id of ids) {
      await world.client.put({ owner: "acme", id, queue: "q", type: "bad", schedule: { every: "365d" } });
      await final(await trigger(`acme/${id}`));
    }
    const { tokens } = operatorOf(world.client);
    const support = await tokens.create({ name: "support", role: "viewer", owners: ["acme"] });
    const { page, go } = await world.as(support);
    await go("/runs");
    await eventually(
      async () => expect(await page.getByRole("link", { name: /^acme\/\w+$/ }).count()).toBe(2),
      PATIENCE,
    );
    const beside = ({ page }: Pick<Visit, "page">) => page.getByRole("region", { name: "The chosen row" });
    for (const id of ids.toReversed()) {
      await page.keyboard.press("j");
      await beside({ page })
        .getByRole("heading", { name: `Run of acme/${id}`, exact: true })
        .waitFor();
      await beside({ page }).getByText("the disk", { exact: false }).first().waitFor();
    }
    await page.keyboard.press("r");
    expect(await page.getByRole("dialog").count()).toBe(0);
    const { pathname, hash } = new URL(page.url());
    const colleague = await world.as(support, "again");
    await colleague.go(pathname + hash);
    await beside(colleague).getByRole("heading", { name: "Run of acme/first", exact: true }).waitFor();
  });
});
