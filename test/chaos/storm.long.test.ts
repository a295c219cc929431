import { expect, it } from "vitest";
import { Unknown } from "../../scripts/chaos/faults/unknown.mjs";
import { Storm } from "../../scripts/chaos/storm.mjs";

it("a fault that may still take effect ends the run, and one that did not happen does not", async () => {
  const ran: string[] = [];
  const entry = (kind: string, run: () => Promise<object>) => ({
    at: 0,
    storm: 0,
    dice: () => 0,
    fault: { kind, scope: "redis", run },
  });
  const fault = (kind: string, error?: Error) =>
    entry(kind, async () => {
      ran.push(kind);
      if (error) throw error;
      return { effective: true };
    });
  const crew = { nodes: [], workers: [], settings: {}, problems: [] as string[], errors: [] };
  await new Storm(crew, {}).run([fault("refused", new Error("no")), fault("next")], 0);
  expect(ran).toEqual(["refused", "next"]);
  const unknown = new Unknown("the clock may jump later");
  const storm = new Storm(crew, {}).run([fault("clock", unknown), fault("after")], 0);
  await expect(storm).rejects.toBe(unknown);
  expect(ran).toEqual(["refused", "next", "clock"]);
  expect(crew.problems.map((one) => one.split(":")[0])).toEqual([
    "refused could not be injected",
    "clock could not be injected",
  ]);
});
