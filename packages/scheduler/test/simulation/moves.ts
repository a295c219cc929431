import type { ActorTimer, Park } from "./actor.js";
import type { Cast, CastMember } from "./cast.js";
import type { Director } from "./director.js";
import { NodeActor } from "./node-actor.js";
import type { WorkerActor } from "./worker-actor.js";

/** Something that an actor may do next: continue from a point, fire a timer, or receive a message. */
export interface Move {
  readonly actor: CastMember;
  readonly park?: Park;
  readonly timer?: ActorTimer;
  readonly message?: number;
}

/** Finds what may happen next in a simulation. */
export class Moves {
  /** Wall clock errors of workers that found no job since the last event: BullMQ's delays use the wall clock. */
  readonly jobless = new Set<number>();
  /** The node that does all remaining work at the end; the others only finish what they began. */
  last: NodeActor | undefined;
  readonly #cast: Cast;
  readonly #director: Director;

  constructor(cast: Cast, director: Director) {
    this.#cast = cast;
    this.#director = director;
  }

  /** Moves grouped by actor, so that an actor with many moves does not act more often. */
  all(): Move[][] {
    return this.#cast.all.flatMap((actor) => {
      if (actor.frozen) return [];
      const timers = this.#stopped(actor) ? [] : actor.dueTimers(this.#director.elapsed);
      const moves: Move[] = [
        ...actor.parks.map((park) => ({ actor, park })),
        ...timers.map((timer) => ({ actor, timer })),
        ...actor.mail.map((_, message) => ({ actor, message })),
      ];
      return moves.length > 0 ? [moves] : [];
    });
  }

  /** Workers that may take a job. */
  freeWorkers(): WorkerActor[] {
    return this.#cast.workers.filter(
      ({ job, frozen, parks, skew }) => !job && !frozen && parks.length === 0 && !this.jobless.has(skew),
    );
  }

  /** Time of the next timer, in elapsed ms. */
  nextTimer(): number | undefined {
    const moving = this.#cast.all.filter((actor) => !actor.frozen && !this.#stopped(actor));
    const times = moving.flatMap(({ timers }) => [...timers].map(({ at }) => at));
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  #stopped(actor: CastMember): boolean {
    return this.last !== undefined && actor instanceof NodeActor && actor !== this.last;
  }
}
