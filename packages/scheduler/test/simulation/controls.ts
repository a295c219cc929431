import { internalsOf } from "@carillon/store/internal";
import { Coverage } from "./coverage.js";
import type { Gear, Sabotaged } from "./equipment.js";
import type { Fault } from "./faults.js";
import type { Ground } from "./ground.js";
import type { Options } from "./history.js";
import { simulate } from "./simulation.js";
import { watchMulti } from "./watch-multi.js";

/** A variant of the claim that is known to break promises. */
export interface Control {
  readonly name: string;
  readonly sabotage: Sabotaged;
  readonly rig?: Options["rig"];
  /** Habits of its histories that make the fault likely. */
  readonly habits?: Pick<Options, "steps" | "failing">;
  /** Faults under which it breaks a promise. */
  readonly faults: readonly Fault[];
  /** The promise that it must break. */
  readonly breaks: RegExp;
  /** First seed of the search: the one that failed last, if that is a late one. */
  readonly from?: number;
}

export const CONTROLS: readonly Control[] = [
  {
    name: "mutex only",
    sabotage: ["fence"],
    faults: ["freezes", "thaw"],
    breaks: /enqueued twice|went back|skipped/,
  },
  {
    name: "no fence, no mutex",
    sabotage: ["mutex", "fence"],
    faults: [],
    breaks: /enqueued twice|went back|skipped/,
  },
  {
    name: "shares change, and the mutex alone",
    sabotage: ["fence"],
    faults: ["shares"],
    breaks: /enqueued twice|went back|skipped/,
    from: 166,
  },
  {
    name: "no check of the time",
    sabotage: ["early"],
    faults: ["clock back"],
    breaks: /before it was due/,
    from: 576,
  },
  {
    name: "texts of scripts are not sent again",
    sabotage: [],
    rig: scriptsUnsent,
    faults: ["flush"],
    breaks: /NOSCRIPT/,
  },
  {
    name: "no overlap guard",
    sabotage: ["overlap-guard"],
    // Only the job of a run that failed can be retried, and the next run of its task must be decided then.
    habits: { steps: 600, failing: 1 },
    faults: ["job retried"],
    breaks: /beside each other/,
    from: 40,
  },
  {
    name: "no check of limits",
    sabotage: ["limit"],
    faults: [],
    breaks: /over its limit/,
  },
  {
    name: "no check of freezes",
    sabotage: ["freeze"],
    faults: [],
    breaks: /during the freeze/,
    from: 407,
  },
  {
    name: "places are not left",
    sabotage: ["places"],
    faults: [],
    breaks: /holds a place/,
    from: 13,
  },
  {
    name: "nothing wakes what waits for a place",
    sabotage: ["wake"],
    faults: [],
    breaks: /did not wake/,
    habits: { steps: 600 },
    from: 17,
  },
  {
    name: "late copies are not told from new requests",
    sabotage: ["once"],
    faults: ["arrives late"],
    breaks: /late copy/,
    from: 76,
  },
  {
    name: "WATCH and MULTI",
    sabotage: ["fence", "overlap-guard"],
    rig: watchMulti("sha"),
    faults: ["flush"],
    breaks: /nothing is known/,
    habits: { steps: 600 },
  },
  {
    name: "WATCH and MULTI, script sent along",
    sabotage: ["fence", "overlap-guard"],
    rig: watchMulti("text"),
    faults: ["lost", "freezes", "thaw"],
    breaks: /enqueued twice|went back|skipped/,
    habits: { steps: 600 },
    from: 897,
  },
];

/** A node that knows its scripts and functions by their names alone. */
function scriptsUnsent({ store }: Gear): () => void {
  const { client } = internalsOf(store).link;
  const original = client.eval as (...args: unknown[]) => Promise<unknown>;
  const load = client.function;
  const refuse = () => Promise.reject(new Error("NOSCRIPT, and no text"));
  // A call with a callback is redlock's.
  const send = (...args: unknown[]) =>
    typeof args.at(-1) === "function" ? original.apply(client, args) : refuse();
  Object.assign(client, { eval: send, function: refuse });
  return () => {
    Object.assign(client, { eval: original, function: load });
  };
}

export interface Finding {
  readonly name: string;
  /** The first seed that broke the promise; undefined: none did. */
  readonly seed: number | undefined;
  readonly violation: string | undefined;
  readonly tried: number;
}

/** Looks for the first history in which a control breaks a promise. */
export async function tryControl(
  ground: Ground,
  { name, sabotage, rig, habits, faults, breaks, from = 1 }: Control,
  atMost: number,
): Promise<Finding> {
  const options: Options = { sabotage, faults, coverage: new Coverage(), ...habits, ...(rig ? { rig } : {}) };
  for (let seed = from; seed < from + atMost; seed++) {
    const { violation } = await simulate(ground, seed, options);
    if (violation !== undefined && breaks.test(violation))
      return { name, seed, violation, tried: seed - from + 1 };
  }
  return { name, seed: undefined, violation: undefined, tried: atMost };
}
