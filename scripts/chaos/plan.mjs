// The plan of a run, derived from the seed alone. Storms, in which faults follow each other closely, alternate with
// probes: one fault, then quiet, so that the recovery time belongs to this fault.
import { randomOf } from "../lib/random.mjs";

/** Time between two faults of a storm, by their scope, in ms. */
const PACE = { node: 300, worker: 1_000, redis: 3_200 };
const STORM = 12_000;
/** Duration of a probe, in ms. */
export const QUIET = 4_000;
const WARM_UP = 1_500;
/** Time for the faults that come last, in ms; a shorter run omits them. */
const LAST = 12_000;
const LAST_FROM = 40_000;

/** Deals all cards before it starts again, so that a short run meets many kinds. */
function deck(cards, dice) {
  let left = [];
  return () => {
    if (left.length === 0) left = shuffled(cards, dice);
    return left.pop();
  };
}

function shuffled(cards, dice) {
  const all = [...cards];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(dice() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}

/** Deals kinds in turn, then one variant of each, so that kinds with many variants do not crowd out the others. */
function byKind(faults, dice) {
  const kinds = groupBy(faults);
  const draws = new Map([...kinds].map(([kind, variants]) => [kind, deck(variants, dice)]));
  // A kind with many variants comes more often.
  const cards = [...kinds].flatMap(([kind, variants]) => Array(Math.min(3, variants.length)).fill(kind));
  const next = deck(cards, dice);
  return () => draws.get(next())?.();
}

function groupBy(faults) {
  const kinds = new Map();
  for (const fault of faults) kinds.set(fault.kind, [...(kinds.get(fault.kind) ?? []), fault]);
  return kinds;
}

/**
 * @param {{ faults: any[], probes: any[], ms: number, seed: number, pace?: Record<string, number> }} options
 * @returns {{ at: number, fault: any, dice: () => number, storm: number, probe?: true }[]} in order; `storm` is when
 * the storm ends
 */
export function makePlan({ faults, probes, ms, seed, pace = PACE }) {
  const dice = randomOf(seed);
  const plan = [];
  const add = (at, fault, more) =>
    plan.push({ at, fault, dice: randomOf(Math.floor(dice() * 2 ** 32)), ...more });
  const lanes = Object.entries(pace).flatMap(([scope, every]) => {
    const own = faults.filter((fault) => fault.scope === scope && !fault.last);
    return own.length > 0 ? [{ every, next: byKind(own, dice), used: new Set() }] : [];
  });
  const probe = probes.length > 0 ? deck(probes, dice) : undefined;
  const last = ms >= LAST_FROM ? faults.filter((fault) => fault.last) : [];
  for (const fault of last) add(ms - LAST, fault, { storm: ms });
  const lanesEnd = last.length > 0 ? ms - LAST : ms;

  for (let begin = WARM_UP; begin < lanesEnd; ) {
    const left = lanesEnd - begin;
    const withProbe = probe && left > QUIET + 2_000;
    const storm = Math.min(STORM, withProbe ? left - QUIET : left);
    const end = begin + storm;
    for (const { every, next, used } of lanes) {
      for (let at = begin + dice() * every; at < end - 300; at += every * (0.5 + dice())) {
        let fault = next();
        for (let tries = 0; fault.once && used.has(fault) && tries < 20; tries++) fault = next();
        if (fault.once && used.has(fault)) continue;
        used.add(fault);
        add(at, fault, { storm: end });
      }
    }
    begin = end;
    if (!withProbe) continue;
    // Most effects of the storm have ended by then.
    add(begin + 300, probe(), { storm: begin + QUIET, probe: true });
    begin += QUIET;
  }
  return plan.sort((a, b) => a.at - b.at);
}
