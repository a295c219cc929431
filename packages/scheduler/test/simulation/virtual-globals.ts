import { ActorTimer } from "./actor.js";
import type { Director } from "./director.js";

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, Date: RealDate } = globalThis;
const { random } = Math;
const { stackTraceLimit } = Error;
const now = performance.now.bind(performance);
const cpuUsage = process.cpuUsage.bind(process);

/**
 * Replaces clocks, timers and chance by the director's for actors of the simulation, until the returned function is
 * called. Timers outside of an actor's move stay real.
 */
export function install(director: Director, chance: () => number): () => void {
  const set =
    (real: typeof setTimeout | typeof setInterval, repeated: boolean) =>
    (act: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
      director.current ? director.timer(() => act(...args), ms, repeated) : real(act, ms, ...args);
  const clear = (real: typeof clearTimeout) => (timer: unknown) => {
    if (timer instanceof ActorTimer) timer.actor.timers.delete(timer);
    else real(timer as NodeJS.Timeout);
  };
  const wall = () => director.wall;
  Object.assign(globalThis, {
    setTimeout: set(setTimeout, false),
    setInterval: set(setInterval, true),
    setImmediate: (act: (...args: unknown[]) => void, ...args: unknown[]) =>
      director.current ? director.soon(() => act(...args)) : setImmediate(act, ...args),
    clearTimeout: clear(clearTimeout),
    clearInterval: clear(clearInterval),
    Date: new Proxy(RealDate, {
      construct: (target, args, newTarget) =>
        Reflect.construct(target, args.length === 0 ? [wall()] : args, newTarget),
      apply: () => new RealDate(wall()).toString(),
      get: (target, key) => (key === "now" ? wall : Reflect.get(target, key)),
    }),
  });
  performance.now = () => director.monotonic;
  process.cpuUsage = () => ({ user: 0, system: 0 });
  // Data in Redis must not contain the position of its code in a test.
  Error.stackTraceLimit = 0;
  Math.random = chance;
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate });
    globalThis.Date = RealDate;
    performance.now = now;
    process.cpuUsage = cpuUsage;
    Error.stackTraceLimit = stackTraceLimit;
    Math.random = random;
  };
}
