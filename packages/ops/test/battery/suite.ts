import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";
import { HTTP_OPERATIONS } from "../../src/http.js";
import { Battery, type Known } from "./battery.js";
import { CONTROLS } from "./controls.js";
import { World } from "./world.js";

const KNOWN: Known = new Map([
  ...HTTP_OPERATIONS.map(({ name, operation }) => [name, operation] as const),
  ...CONTROLS,
]);
const changing = HTTP_OPERATIONS.filter(({ method }) => method !== "GET").map(({ name }) => name);

/** @param every trials at each write of each call, which takes long */
export function batteries(every: boolean): void {
  const redis = sharedRedis();
  let world: World;
  beforeAll(async () => {
    world = await World.build(redis);
  });
  afterAll(() => world.close());

  /** @param enough ends the trials with a fault */
  async function faultsOf(
    name: string,
    all: boolean,
    enough: (fault: string, count: number) => boolean,
  ): Promise<string[]> {
    const found: string[] = [];
    for await (const [title, trial] of new Battery(world, KNOWN, name).trials(all)) {
      const faults = await trial();
      if (faults.length === 0) continue;
      const fault = `${title}:\n${faults.join("\n")}`;
      found.push(fault);
      if (enough(fault, found.length)) break;
    }
    return found;
  }

  describe.each(changing)("%s", (name) => {
    it("takes the steps that it declares", async () => {
      const battery = new Battery(world, KNOWN, name);
      const { once } = battery.call.operation;
      const { steps, changes } = await battery.steps();
      expect(changes, "changes something, as its example is").toBe(once !== "reads");
      if (once === "script") expect(steps).toBeLessThan(2);
    });

    it("leaves what its calls leave in some sequence, whatever comes between", async () => {
      expect((await faultsOf(name, every, (_, count) => count === 5)).join("\n\n")).toBe("");
    });
  });

  describe("finds", () => {
    it.each([
      ["controls.resume", /^(twice|overtaken by controls\.resume).*backfills bells\/acme\/p1 is.*cancelled/s],
      [
        "controls.apply",
        /^overtaken by controls\.apply .*"version":3.*tasks bells\/acme\/s. is.*0 11 \* \* \*/s,
      ],
      ["controls.spread", /^overtaken by tasks\.put.*tasks bells\/acme\/u1 is/s],
    ])("the fault of %s", async (name, fault) => {
      const found = await faultsOf(name, true, (one) => fault.test(one));
      expect(found.at(-1)).toMatch(fault);
    });
  });
}
