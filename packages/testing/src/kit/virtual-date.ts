import { CarillonError } from "@carillon/core";

/** On the global object: two copies of this package must not fake `Date` over each other. */
const OPEN = Symbol.for("carillon.testing.kit");
const place = globalThis as { [OPEN]?: true };

/**
 * Makes `Date` of this process tell `now()`, until the function that it returns is called. Timers and
 * `performance.now` stay real. Dates made before and after are instances of it alike.
 *
 * @throws `CONFLICT` while another kit is open
 */
export function fakeDate(now: () => number): () => void {
  if (place[OPEN]) {
    throw new CarillonError("CONFLICT", "a test kit is open in this process already.", {
      remedy: "Close it first: await kit.close(), in afterEach say.",
    });
  }
  place[OPEN] = true;
  const real = globalThis.Date;
  const fake = new Proxy(real, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new real(now()).toString(),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  globalThis.Date = fake;
  return () => {
    // Whoever put another one over ours takes care of it.
    if (globalThis.Date === fake) globalThis.Date = real;
    delete place[OPEN];
  };
}
