import { conflict } from "@carillon/core/internal";

/** Kept on the global object, so that two copies of this package do not fake `Date` over each other. */
const OPEN = Symbol.for("carillon.testing.kit");
const place = globalThis as { [OPEN]?: true };

/**
 * Makes `Date` of this process use `now()`, until the returned function is called. Timers and
 * `performance.now` stay real. Dates made before and after are instances of it.
 *
 * @throws `CONFLICT` while another kit is open
 */
export function fakeDate(now: () => number): () => void {
  if (place[OPEN])
    throw conflict(
      "a test kit is open in this process already.",
      "Close it first: await kit.close(), for example in afterEach.",
    );
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
    // If other code has replaced ours since, it restores `Date` itself.
    if (globalThis.Date === fake) globalThis.Date = real;
    delete place[OPEN];
  };
}
