import type { Cast } from "./cast.js";
import type { Dice } from "./dice.js";
import type { Equipment } from "./equipment.js";
import type { Ground } from "./ground.js";
import type { Character } from "./operations.js";
import { changeShares, removeFromOutside, retryFromOutside } from "./outside.js";

/** Faults that strike an actor at its point. */
export const AT_A_POINT = ["dies", "freezes", "lost"] as const;
export type FaultAtPoint = (typeof AT_A_POINT)[number];
/** Faults that strike from outside. */
export const AROUND = [
  "flush",
  "shares",
  "clock forward",
  "clock back",
  "clock ahead",
  "wall clock",
  "job retried",
  "job removed",
  "lock lost",
  "thaw",
] as const;
export type FaultAround = (typeof AROUND)[number];
/** A request arrives once more, or for the first time when its sender has given it up. */
export const LATE = "arrives late";
export type Fault = FaultAtPoint | FaultAround | "message lost" | typeof LATE;

/** Shares of steps at which a fault from outside strikes, and of steps at a point at which a fault strikes there. */
const RATES = [0.05, 0.1, 0.2];

/**
 * Chooses the faults of a history and their rate.
 * @param given faults to use instead, at the highest rate
 */
export function chooseFaults(
  dice: Dice,
  character: Character,
  given: readonly Fault[] | undefined,
): { faults: ReadonlySet<Fault>; rate: number } {
  const possible = [...AT_A_POINT, ...AROUND, "message lost" as const].filter(
    // The generation of a task begins at the clock's time: no task is created again while the clock is behind the one
    // before.
    (fault) => fault !== "clock back" || !character.deletes,
  );
  const some = possible.filter(() => dice.chance(0.6));
  const rate = dice.pick([0, ...RATES]);
  return given ? { faults: new Set(given), rate: Math.max(...RATES) } : { faults: new Set(some), rate };
}

/** Things that a fault from outside may strike. */
interface Surroundings {
  readonly ground: Ground;
  readonly equipment: Equipment;
  readonly cast: Cast;
  readonly dice: Dice;
  /** Jobs whose worker died. */
  readonly orphans: string[];
  /** Sets the clock of Redis. */
  jump(ms: number): Promise<string>;
}

/** Returns a description of the fault; undefined: there was nothing to strike. */
export async function strikeFrom(fault: FaultAround, around: Surroundings): Promise<string | undefined> {
  const { ground, equipment, cast, dice, orphans, jump } = around;
  const { nodes, workers, all } = cast;
  switch (fault) {
    case "flush":
      await ground.admin.script("FLUSH");
      await ground.admin.function("FLUSH");
      return "";
    case "shares":
      return changeShares(equipment, dice);
    case "clock forward":
      return jump(dice.pick([3_000, 12_000, 61_000, 120_000]));
    case "clock back":
      return jump(-dice.pick([500, 3_000, 15_000, 60_000]));
    case "clock ahead": {
      const node = dice.pick(nodes);
      const ms = dice.pick([10, 100, 2_000]);
      node.runAhead(ms);
      return `${node.name} ${ms}`;
    }
    case "wall clock": {
      const actor = dice.pick([...nodes, ...workers]);
      actor.skew = dice.pick([-600_000, -3_000, 3_000, 600_000, 3_600_000]);
      return `${actor.name} ${actor.skew}`;
    }
    case "job retried":
      return retryFromOutside(equipment);
    case "job removed":
      return removeFromOutside(equipment, dice);
    case "lock lost": {
      // The lock of a worker that died, or of one that did not renew it in time and continues unaware.
      const held = workers.flatMap(({ job }) => (job ? [job] : []));
      const [job] = [...orphans.splice(0, 1), ...held];
      if (job !== undefined) await workers[0]?.rescue(job);
      return job;
    }
    case "thaw": {
      const frozen = all.filter((actor) => actor.frozen);
      if (frozen.length === 0) return undefined;
      const actor = dice.pick(frozen);
      actor.frozen = false;
      return actor.name;
    }
  }
}
