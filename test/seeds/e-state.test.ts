import { operatorOf } from "@carillon/ops";
import { defineTask, type TaskInput } from "@carillon/sdk";
import { displayText } from "@carillon/sdk/schedule";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
const START = "2026-01-01T00:00:30Z";
const at = (clock: string) => `2026-01-01T${clock}Z`;

describe("E24 a task's state is the same few words at each door", () => {
  it("each state is said, and the next time of each task is when it runs, also after a freeze", async () => {
    let fails = true;
    const handler = async () => {
      if (fails) throw new Error("no paper");
    };
    const type = (name: string, handles: (payload: unknown) => Promise<void>) =>
      defineTask(name, { queue: "bells", payload: anything, handler: handles });
    const kit = await stand.kit({
      types: [
        type("fine", async () => {}),
        type("bad", handler),
        type("slow", () => kit.sleep("5h")),
        defineTask("print", { queue: "gongs", payload: anything, handler: async () => {} }),
      ],
      queues: ["bells", "gongs"],
      start: START,
    });
    const put = (id: string, type: string, rest: Partial<TaskInput> = {}) =>
      kit.client.put({ id, type, queue: "bells", schedule: { every: "1h" }, payload: {}, ...rest });
    const state = async (id: string) => displayText((await kit.client.get(id)).display!);
    const ops = operatorOf(kit.client);

    await put("due", "fine");
    await put("never", "fine", { schedule: { manual: true } });
    await put("once", "fine", { schedule: { at: at("00:05:00") } });
    await put("single", "fine", { schedule: { at: at("01:30:00") } });
    await put("busy", "slow");
    // No worker works this queue.
    await put("pdf", "pdf", { queue: "prints", schedule: { manual: true } });
    await kit.client.trigger("pdf");
    await put("behind", "print", { queue: "gongs" });
    await put("paused", "fine");
    await put("failing", "bad", { schedule: { every: "5m" } });
    await put("failed", "bad", { schedule: { every: "40m" } });
    await put("again", "bad", { retry: { attempts: 2, delay: "1h" } });
    await put("held", "fine", { schedule: { every: "7m" } });
    await put("tenant", "fine", { owner: "acme", schedule: { cron: "*/20 * * * *", timezone: "UTC" } });
    await kit.client.pause("paused", { by: "ann" });
    await ops.queues.pause({ queue: "gongs" }, { by: "bob" });
    const names = ["held", "single"].map((id) => ({ queue: "bells", owner: "system", id }));
    await ops.freezes.put({ tasks: names, until: at("02:00:00"), note: "a stocktaking" }, { by: "carol" });
    await ops.freezes.put({ owner: "acme" });
    await kit.advanceTo(at("01:03:00"));

    const list = async () => {
      const { tasks } = await kit.client.list();
      return Object.fromEntries(tasks.map(({ id, display }) => [id, displayText(display!)]));
    };
    const words = {
      due: `due ${at("02:00:00")}`,
      never: "never due",
      once: "over",
      single: `held until ${at("02:00:00")} by carol`,
      busy: "runs",
      pdf: "waits for a worker (none for pdf)",
      behind: "waits for its queue (paused by bob)",
      paused: "paused by ann",
      failing: `fails since ${at("00:05:00")} (12 in a row)`,
      failed: `failed at ${at("00:40:00")}`,
      again: "waits for its next attempt",
      held: `held until ${at("02:00:00")} by carol`,
      tenant: "held",
    };
    expect(await list()).toEqual(words);
    for (const [id, text] of Object.entries(words)) if (id !== "tenant") expect(await state(id)).toBe(text);
    const { stdout } = await stand.carillon(["list"]);
    // The command has the clock of Redis, not the test's: to it the times to come are over, or not yet.
    const { due: _, single: __, held: ___, ...timeless } = words;
    for (const [id, text] of Object.entries(timeless)) {
      const shown = text.replace(/ \d{4}\S+/, " \\S+").replace(/[()]/g, "\\$&");
      expect(stdout).toMatch(new RegExp(`/${id} +\\S+ +${shown} `));
    }

    // The seventh minute after the freeze, not in four minutes.
    expect((await kit.client.get("held")).display).toMatchObject({
      next: Date.parse(at("02:06:00")),
      skips: true,
      note: "a stocktaking",
    });
    expect((await kit.client.get("single")).display).toMatchObject({ next: Date.parse(at("02:00:00")) });
    expect((await kit.client.get("single")).display).not.toHaveProperty("skips");
    expect((await kit.client.get({ id: "tenant", owner: "acme" })).display).not.toHaveProperty("next");

    // Each next time comes true.
    const { tasks } = await kit.client.list();
    const foretold = tasks.flatMap(({ id, display }) =>
      display?.next === undefined || !["due", "held", "fails"].includes(display.code)
        ? []
        : [[id, display.next] as const],
    );
    fails = false;
    const now = kit.now;
    await kit.advanceTo(at("02:10:00"));
    for (const [id, next] of foretold) {
      const runs = (await kit.client.runs.list(id)).filter(({ enqueued }) => enqueued > now);
      expect([id, runs.at(-1)?.enqueued]).toEqual([id, next]);
    }
    expect(foretold.map(([id]) => id).sort()).toEqual(["due", "failed", "failing", "held", "single"]);
    expect(await state("failing")).toBe(`due ${at("02:15:00")}`);
    expect(await state("single")).toBe("over");
  });
});
