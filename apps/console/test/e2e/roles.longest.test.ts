import { operatorOf } from "@carillon/ops";
import { expect, test } from "vitest";
import { inABrowser, put, world } from "./furnished.js";
import { titleOf } from "./world.js";

inABrowser("roles and tokens", () => {
  test("alerts are silenced and released by roles that may do so", async () => {
    const viewer = await world.as("viewer");
    for (const path of ["/settings/alerts", "/held"]) {
      await viewer.go(path);
      expect(await viewer.page.locator("main button").count()).toBe(0);
    }
    const { page, go } = await world.as("operator");
    await go("/settings/alerts");
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Test" }).click();
    await dialog.getByRole("textbox").fill("nonsense");
    await dialog.getByRole("button", { name: "Test" }).click();
    // The field that is refused says so, and has the focus.
    await dialog.locator(".field:has(input[aria-invalid=true]:focus) .refusal").waitFor();
    await page.keyboard.press("Escape");
    await go("/held");
    await page.getByRole("button", { name: "Silence" }).click();
    await dialog.getByRole("textbox", { name: "Task" }).fill("fails");
    await dialog.getByLabel("Until", { exact: false }).fill("2040-01-01T00:00");
    await dialog.getByRole("button", { name: "Silence" }).click();
    const row = page.locator("main li", { hasText: "Task fails" });
    await row.waitFor();
    const silences = async () =>
      (await operatorOf(world.client).silences.list()).silences.filter(({ task }) => task === "fails");
    expect(await silences()).toMatchObject([{ until: Date.UTC(2040, 0), by: "operator" }]);
    await row.getByRole("button", { name: "Lift" }).click();
    await dialog.getByRole("button", { name: "Lift" }).click();
    await row.waitFor({ state: "detached" });
    expect(await silences()).toEqual([]);
  });

  test("actions that a role may not take are hidden, and refused at their addresses", async () => {
    const { page, go } = await world.as("viewer");
    await go("/tasks/q/system/fine");
    expect(await page.locator("main .page-head button, main .page-head a").count()).toBe(0);
    await go("/tasks");
    expect(await page.locator("main input[type=checkbox]").count()).toBe(0);
    await go("/tasks/q/system/fine/edit");
    await page.getByLabel("Description").waitFor();
    expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
    await page.goto(`${world.url}/task`);
    await titleOf(page, "This page does not exist.").waitFor();
    await page.goto(`${world.url}/runs/gone%40by-now`);
    await titleOf(page, "Run of gone").waitFor();
    await page.getByText('No run has the id "gone@by-now".', { exact: false }).waitFor();
    const answer = await page.request.post(`${world.url}/api/v1/tasks/q/system/fine/pause`, {
      headers: { origin: world.url },
    });
    expect(answer.status()).toBe(403);
    const operator = await world.as("operator");
    await operator.go("/tasks/q/system/fine");
    await operator.page.getByRole("button", { name: "More to do" }).click();
    const offers = operator.page.getByRole("menuitem");
    expect(await offers.allTextContents()).toEqual(["Pause", "Freeze", "Backfill"]);
  });

  test("a token of two owners sees the load and the changes of one of them, and no other tasks", async () => {
    await put("theirs", { owner: "umbrella", type: "lonely" });
    const owners = ["acme", "umbrella"];
    const { page, go } = await world.as(
      await operatorOf(world.client).tokens.create({ name: "both", role: "viewer", owners }),
    );
    await page.locator(".live[data-live=true]").waitFor();
    await page.getByRole("combobox", { name: "Owner" }).selectOption("umbrella");
    await page.getByRole("link", { name: "Load", exact: true }).click();
    await page.getByText("24 starts of 1 task", { exact: false }).waitFor();
    expect(await page.locator("main").textContent()).not.toContain("fails");
    await go("/tasks");
    await page.getByRole("link", { name: "umbrella/theirs" }).waitFor();
    expect(await page.locator("main [data-row]").count()).toBe(1);
    await world.client.delete("umbrella/theirs");
    await page.getByText("There are no tasks yet", { exact: false }).waitFor();
  });

  test("a link for support is made, opens its owners' tasks for reading, and is revoked", async () => {
    const { page, go } = await world.as("admin");
    await go("/settings/tokens");
    await page.getByRole("button", { name: "New link" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("support");
    await dialog.getByLabel("Owners").fill("acme");
    await dialog.getByRole("button", { name: "Create" }).click();
    const link = (await dialog.locator("pre", { hasText: "token=" }).textContent()) ?? "";
    await page.keyboard.press("Escape");
    const [{ expires = 0 } = {}] = (await operatorOf(world.client).tokens.list()).tokens.filter(
      ({ name }) => name === "support",
    );
    expect(expires).toBeGreaterThan(Date.now());
    const context = await page.context().browser()!.newContext();
    const theirs = await context.newPage();
    await theirs.goto(link);
    expect(theirs.url()).not.toContain("token");
    await theirs.goto(`${world.url}/tasks?owner=acme`);
    await theirs.getByRole("link", { name: "acme/paused" }).waitFor();
    expect(await theirs.getByRole("link", { name: "fails", exact: true }).count()).toBe(0);
    // The navigation has no page that it may not see.
    expect(await theirs.getByRole("link", { name: "Tokens", exact: true }).count()).toBe(0);
    const row = page.locator("main li", { hasText: "support" });
    await row.getByRole("button", { name: "Revoke" }).click();
    await dialog.getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
    expect((await theirs.request.get(`${world.url}/api/v1/tasks`)).status()).toBe(401);
    await context.close();
  });

  test("a quota and a recurring freeze that are set show at their owner, whose own token sees neither quotas nor other owners", async () => {
    const { page, go } = await world.as("admin");
    await go("/settings/rules");
    const dialog = page.getByRole("dialog");
    const scope = dialog.getByLabel("Scope", { exact: true });
    await page.getByRole("button", { name: "Set defaults" }).click();
    await scope.fill("all");
    await dialog.getByLabel("Policies").fill('{"timeLimit":"soon"}');
    await dialog.getByRole("button", { name: "Save" }).click();
    // A refusal of a part stands at the field that holds it.
    await dialog.locator(".field:has(textarea[aria-invalid=true]:focus) .refusal").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Set a quota" }).click();
    await dialog.getByLabel("Tasks", { exact: true }).fill("100");
    await scope.fill("acme");
    await dialog.getByRole("button", { name: "Save" }).click();
    // The field that is refused says so, and has the focus.
    await dialog.locator(".field:has(input[aria-invalid=true]:focus) .refusal").waitFor();
    await scope.fill("owner:acme");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("at most 100 tasks", { exact: true }).waitFor();
    // The focus is back where it was.
    await page.locator("button:focus", { hasText: "Set a quota" }).waitFor();
    await page.getByRole("link", { name: "owner:acme", exact: true }).click();
    await page.getByText(/^\d of 100 used$/).waitFor();
    await page.getByRole("button", { name: "Freeze", exact: true }).click();
    await dialog.getByRole("button", { name: "In recurring windows" }).click();
    await dialog.getByRole("button", { name: "Sun", exact: true }).click();
    await dialog.getByText("Concerns 1 task", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Freeze", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    await go("/held");
    const row = page.locator("main li", { hasText: "for 2 h each, at 18:00, on Sunday (UTC)" });
    await row.getByRole("button", { name: "Lift" }).click();
    await dialog.getByRole("button", { name: "Lift" }).click();
    await row.waitFor({ state: "detached" });
    const ops = operatorOf(world.client);
    await ops.quotas.set({ scope: "owner:acme" });
    const { secret } = await ops.tokens.create({ name: "tenant", role: "admin", owners: ["acme"] });
    const bound = await world.as({ secret });
    await bound.go("/owners/acme");
    await titleOf(bound.page, "Owner acme").waitFor();
    await bound.page.getByRole("link", { name: "Settings", exact: true }).click();
    await titleOf(bound.page, "Alerts").waitFor();
    expect(await bound.page.getByRole("link", { name: /^(Rules|Tokens|System)$/ }).count()).toBe(0);
    await bound.go("/owners/system");
    await bound.page.getByRole("alert").first().waitFor();
  });
});
