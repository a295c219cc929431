import { HTTP_OPERATIONS, perform, redactorOf } from "@carillon/ops/internal";
import { defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../each-kit.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");

describe("E23 support finds an item of any run by its data", () => {
  const invoice = defineTask("invoice", {
    queue: QUEUE,
    payload: z.object({ month: z.string(), customers: z.array(z.string()) }),
    generate: ({ month, customers }) => customers.map((customer) => ({ month, customer })),
    process: ({ customer }) => {
      if (customer === "Cust-3") throw new Error("no address");
    },
  });
  const { kit, ops } = eachKit({ types: [invoice], start: START });
  const find = (text: string, more: { limit?: number; cursor?: string } = {}) =>
    ops.runs.findItems({ id: "t", text, ...more });

  async function twoMonths(): Promise<string[]> {
    const task = { id: "t", type: "invoice", queue: QUEUE, schedule: { every: "30d" } } as const;
    for (const [month, customers] of [
      ["Nov", ["Cust-1", "Cust-2", "Cust-3"]],
      ["Dec", ["Cust-2", "Cust-3", "Cust-10"]],
    ] as const) {
      await kit.client.put({ ...task, payload: { month, customers } });
      await kit.client.trigger("t");
      await kit.advance("1h");
    }
    return (await kit.client.runs.list("t")).map(({ id }) => id);
  }

  it("finds them in all runs, the newest run first, in capitals or not", async () => {
    const [second, first] = await twoMonths();
    expect(await find("cust-3")).toMatchObject({
      items: [
        { run: second, nominal: START + 3_600_000, index: 1, status: "failed", data: { month: "Dec" } },
        { run: first, nominal: START, index: 2, status: "failed", data: { month: "Nov" } },
      ],
      cursor: undefined,
    });
    const { items } = await find('"cust-1"');
    expect(items.map(({ run, data }) => [run, data])).toEqual([
      [first, { month: "Nov", customer: "Cust-1" }],
    ]);
    expect((await find("cust-4")).items).toEqual([]);
  });

  it("gives all of them by pages, once, although a run ends meanwhile", async () => {
    const [second, first] = await twoMonths();
    const seen: [string, number][] = [];
    let cursor: string | undefined;
    do {
      const page = await find("CUST", { limit: 1, ...(cursor && { cursor }) });
      expect(page.items.length).toBeLessThanOrEqual(1);
      for (const { run, index } of page.items) seen.push([run, index]);
      if (!cursor) {
        await kit.client.trigger("t");
        await kit.advance("1h");
      }
      cursor = page.cursor;
    } while (cursor);
    expect(seen).toEqual([second, first].flatMap((run) => [0, 1, 2].map((index) => [run, index])));
  });

  it("looks at 10,000 items in one call, and says where to go on", async () => {
    const runs = await twoMonths();
    const { link, keys } = internalsOf(kit.store);
    for (const run of runs) {
      const records = Array.from({ length: 9_000 }, (_, i) => [
        i,
        "completed 1 1 1 1 1 w 0 -\n",
        `d${i}`,
        "{}",
      ]);
      const last = { n: 9_000, d8999: '"needle"' };
      await link.ask((client) =>
        client.hset(
          keys.queue(QUEUE).items(run as string),
          ...records.flat(),
          ...Object.entries(last).flat(),
        ),
      );
    }
    const first = await find("needle");
    expect(first.items).toMatchObject([{ run: runs[0], index: 8_999 }]);
    const second = await find("needle", { cursor: first.cursor as string });
    expect(first.cursor).toContain(" 1000 ");
    expect(second).toMatchObject({ items: [{ run: runs[1], index: 8_999 }], cursor: undefined });
  });

  it("finds no value that is hidden from the caller", async () => {
    await twoMonths();
    const { replacer } = redactorOf({ redact: ["customer"] });
    const find = HTTP_OPERATIONS.find(({ name }) => name === "runs.findItems")?.operation;
    if (!find) throw new Error("no such operation");
    const asked = async (text: string, limit = 100) =>
      (await perform(kit.client, find, { id: "t", text, limit }, {}, replacer)) as { items: unknown[] };
    expect((await asked("cust-3")).items).toEqual([]);
    // The answer does not tell whether it is among the hidden values, not even by its cursor.
    expect(await asked("cust-3", 1)).toEqual(await asked("cust-4", 1));
    expect((await asked("Nov")).items).toHaveLength(3);
  });

  it.each<[string, { text: string; limit?: number; cursor?: string }]>([
    ["text", { text: "" }],
    ["text", { text: "x".repeat(201) }],
    ["cursor", { text: "x", cursor: "1 2" }],
    ["limit", { text: "x", limit: 0 }],
  ])("refuses a wrong %s", async (field, input) => {
    await twoMonths();
    await expect(find(input.text, input)).rejects.toMatchObject({ code: "INVALID_OPTION", field });
  });
});
