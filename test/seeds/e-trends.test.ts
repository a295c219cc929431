import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
const START = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;

describe("E27 what got worse since a deploy is seen, task by task and team by team", () => {
  it("six hours since a deploy against the six before: which task fails, and which got slower", async () => {
    let deployed = false;
    const type = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: async (_payload, { occurrence: { task } }) => {
        if (deployed && task === "invoices") throw new Error("no column v");
        await kit.sleep(deployed && task === "reports" ? "9m" : "3m");
      },
    });
    const kit = await stand.kit({ types: [type], start: START });
    const ops = operatorOf(kit.client);
    const task = (id: string, tags: string[], payload: object = {}) => ({
      ...{ owner: "acme", id, type: "work", queue: "bells", schedule: { every: "15m" }, tags, payload },
    });
    const apply = (version: string) =>
      ops.sets.apply({
        ...{ set: "shop", version },
        tasks: [
          ...[task("invoices", ["billing"], { version }), task("dunning", ["billing"])],
          task("reports", ["insight"], { version }),
        ],
      });
    await apply("41");
    await kit.advance("8h13m");
    await apply("42");
    deployed = true;
    const at = kit.now;
    await kit.advance("6h");

    const asked = { from: at, to: kit.now } as const;
    const byTask = await ops.runs.trends({ ...asked, sort: "share", change: true });
    expect(byTask).toMatchObject({
      start: at - 6 * HOUR,
      deploys: [{ at, set: "shop", version: "42" }],
      rows: [
        { task: { id: "invoices" }, figures: { runs: 24, share: 0 }, before: { runs: 24, share: 1 } },
        { task: { id: "dunning" }, figures: { share: 1, p95: 180_000 }, before: { share: 1, p95: 180_000 } },
        { task: { id: "reports" }, figures: { share: 1, p95: 540_000 }, before: { share: 1, p95: 180_000 } },
      ],
    });
    expect((await ops.runs.trends({ ...asked, sort: "p95", change: true })).rows[0]?.task?.id).toBe(
      "reports",
    );
    const teams = await ops.runs.trends({ ...asked, by: "tag", sort: "share", change: true });
    expect(teams.rows.map(({ tag, tasks, figures }) => [tag, tasks, figures.share])).toEqual([
      ["billing", 2, 0.5],
      ["insight", 1, 1],
    ]);

    const times = Object.entries(asked).flatMap(([name, ms]) => [`--${name}`, new Date(ms).toISOString()]);
    const { stdout } = await stand.carillon(["trends", ...times, "--by", "tag", "--sort", "share"]);
    expect(stdout).toMatch(/^72 runs within 6 h, against the time before\n/);
    expect(stdout).toMatch(/billing +48 .*50% \(−50%\)/);
    expect(stdout).toMatch(/shop +42/);
    const { stdout: json } = await stand.carillon([
      "trends",
      ...times,
      "--sort",
      "p95",
      "--change",
      "--json",
    ]);
    expect(JSON.parse(json)).toMatchObject({ rows: [{ task: { id: "reports" } }, {}, {}] });
  });
});
