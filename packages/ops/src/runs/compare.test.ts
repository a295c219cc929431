import { Client, defineTask } from "@carillon/sdk";
import { expect, it } from "vitest";
import { z } from "zod";
import { type EachKit, eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const send = defineTask("send", {
  queue: "bells",
  payload: z.object({ to: z.string() }),
  handler: async ({ to }) => {
    await kit.sleep(to === "nobody" ? "20s" : "2s");
    if (to === "nobody") throw new Error("no such address");
  },
});
const { kit, ops }: EachKit = eachKit({ types: [send], start: START });

it("a run is compared with the last good one before it, and with the definition of that time", async () => {
  const put = (to: string, priority: number) =>
    kit.client.put({
      ...{ id: "t", owner: "acme", type: "send", queue: "bells", schedule: { every: "1h" } },
      ...{ payload: { to }, priority },
    });
  await put("bob", 1);
  await kit.advance("61m");
  await put("nobody", 1);
  await put("nobody", 7);
  await kit.advance("60m");
  await put("bob", 7);
  await kit.advance("60m");
  const [third, second, first] = await kit.client.runs.list("acme/t");
  const { runs } = ops;
  expect(await runs.compare({ id: second!.id })).toEqual({
    run: second,
    good: first,
    definition: {
      number: { before: 1, after: 3 },
      before: { payload: { to: "bob" }, priority: 1 },
      after: { payload: { to: "nobody" }, priority: 7 },
    },
  });
  expect(await runs.compare({ id: first!.id })).toEqual({ run: first });
  expect(await runs.compare({ id: third!.id })).toMatchObject({ good: { id: first!.id } });
  const other = operatorOf(new Client({ store: kit.store, owner: "globex" }));
  await expect(other.runs.compare({ id: first!.id })).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  const { tasks } = ops;
  expect((await tasks.revisions({ owner: "acme", id: "t", compare: 3 })).preview).toMatchObject({
    before: { payload: { to: "bob" } },
    after: { payload: { to: "nobody" } },
    times: { before: expect.any(Array) },
  });
  await expect(tasks.revisions({ owner: "acme", id: "t", compare: 99 })).rejects.toMatchObject({
    code: "REVISION_NOT_FOUND",
  });
  // Only the last definitions are recorded: the first one is not known any more.
  for (let n = 10; n < 34; n++) await put("bob", n);
  expect(await runs.compare({ id: second!.id })).not.toHaveProperty("definition");
});
