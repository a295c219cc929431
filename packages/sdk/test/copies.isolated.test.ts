import { loadBull } from "@carillon/store/internal";
import { describe, expect, it, vi } from "vitest";
import * as core from "../../core/src/index.js";
import * as http from "../src/http/index.js";
import * as sdk from "../src/index.js";
import { isPermanent } from "../src/worker/errors.js";

await loadBull();

/** Exported error classes by name, with those of a second copy of each package. */
async function copies(): Promise<[name: string, mine: ErrorClass, other: ErrorClass][]> {
  vi.resetModules();
  const others = [
    await import("../../core/src/index.js"),
    await import("../src/index.js"),
    await import("../src/http/index.js"),
  ];
  vi.resetModules();
  return [core, sdk, http].flatMap((exported, i) =>
    Object.entries(exported)
      .filter((one): one is [string, ErrorClass] => isErrorClass(one[1]))
      .map(([name, mine]): [string, ErrorClass, ErrorClass] => [
        name,
        mine,
        (others[i] as unknown as Record<string, ErrorClass>)[name] as ErrorClass,
      ]),
  );
}

type ErrorClass = new (...args: never[]) => Error;
const isErrorClass = (value: unknown) => typeof value === "function" && value.prototype instanceof Error;

describe("an error class of another copy of the SDK", () => {
  it("is known, whichever class is exported", async () => {
    const found = await copies();
    const names = found.map(([name]) => name);
    for (const name of ["CarillonError", "PermanentError", "TimeLimitError", "HttpError"])
      expect(names).toContain(name);
    const plain = [new Error("x"), null, undefined, "text", {}];
    for (const [name, mine, other] of found) {
      expect(other, name).not.toBe(mine);
      const error = Object.create(other.prototype as object) as unknown;
      expect(error instanceof mine, name).toBe(true);
      for (const value of plain) expect((value as unknown) instanceof mine, name).toBe(false);
      // A subclass has its own instances only.
      class Special extends mine {}
      expect(error instanceof Special, name).toBe(false);
      expect(Object.create(Special.prototype) instanceof mine, name).toBe(true);
      // Each class knows its own kind only.
      for (const [another, kind] of found)
        if (another !== name && !(mine.prototype instanceof kind) && !(kind.prototype instanceof mine))
          expect(error instanceof kind, `${name} and ${another}`).toBe(false);
    }
  });

  it("is permanent as our own, also a subclass", async () => {
    vi.resetModules();
    const { PermanentError } = await import("../src/index.js");
    vi.resetModules();
    class Declined extends PermanentError {
      override name = "Declined";
    }
    expect(new Declined("no") instanceof sdk.PermanentError).toBe(true);
    for (const error of [new PermanentError("no"), new Declined("no")]) expect(isPermanent(error)).toBe(true);
    expect(isPermanent(new Error("no"))).toBe(false);
  });
});
