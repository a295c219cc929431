import { internalsOf } from "@carillon/store/internal";
import { NO_BURSTS } from "../../src/burst/bursts.js";
import type { ActorTimer, Park } from "./actor.js";
import { Cast, type CastMember, type ClientActor } from "./cast.js";
import { Checks } from "./checks.js";
import type { Coverage } from "./coverage.js";
import { Dice } from "./dice.js";
import { digest } from "./digest.js";
import { Director, MUTEX_TURNS, START } from "./director.js";
import { post } from "./ears.js";
import type { Equipment, Gear, Role, Sabotaged } from "./equipment.js";
import {
  AROUND,
  AT_A_POINT,
  chooseFaults,
  type Fault,
  type FaultAround,
  type FaultAtPoint,
  strikeFrom,
} from "./faults.js";
import type { Ground } from "./ground.js";
import { NodeActor } from "./node-actor.js";
import { type Character, character, IDS, limitOf, operationOf, putOf, QUEUE } from "./operations.js";
import { chance } from "./seams.js";

/** There are few tasks: whatever comes due at one instant is a burst to these nodes, and is prepared long before. */
const BURSTS = { shards: 1, ahead: 20_000 };

import { install } from "./virtual-globals.js";
import { pass } from "./virtual-mutex.js";
import { CarillonWorkerActor, WorkerActor } from "./worker-actor.js";

/** Steps of one history, before everything may come to rest. */
const STEPS = 150;
/** All is checked each time after so many steps. */
const CHECK_EVERY = 30;
/**
 * What has not come to rest within so many more ms never will. A job that a worker delayed while its clock was an hour ahead
 * comes back an hour later.
 */
const REST_WITHIN = 2 * 3_600_000;
/** Nor will what goes on for so many steps while no time passes. */
const STEPS_AT_ONCE = 5_000;
/** How often an actor stands still after a script; before one it always does. */
const STOP_AFTER = 0.35;

/** Before the scripts that may publish something. */
const PUBLISHES = /^before (commit|put|resume|cancel-run|start-run|settle-run|replan)$/;
/** Where a job may come into the queue. */
const ADDS_JOBS = /^(before|after) (commit|enqueue-new|end|exec)$/;
/** What a client may be told without anything being wrong. */
const EXPECTED = new Set(["TASK_NOT_FOUND", "CONFLICT", "REDIS_UNAVAILABLE", "OWNER_LIMIT"]);
/** Where BullMQ, not Carillon, speaks to Redis, or nobody does: there is no answer of ours to lose. */
const NOT_OURS = /^handler$|(end|take)$/;

export interface Options {
  readonly sabotage?: Sabotaged;
  /** Other ways for a node to do things, for a positive control. */
  readonly rig?: (gear: Gear, point: (name: string) => Promise<void>) => () => void;
  readonly coverage: Coverage;
  /** These faults, as often as ever. Default: what the dice say. */
  readonly faults?: readonly Fault[];
  /** Whether to tell what Redis held at the end. */
  readonly digest?: boolean;
}

export interface History {
  readonly seed: number;
  /** What broke a promise; undefined: all were kept. */
  readonly violation: string | undefined;
  /** All that happened, a line a step. */
  readonly trace: readonly string[];
  readonly occurrences: number;
  readonly digest: string | undefined;
}

interface Move {
  readonly actor: CastMember;
  readonly park?: Park;
  readonly timer?: ActorTimer;
  readonly message?: number;
}

/** One history: everybody interleaved by the seed, faults where it says, every promise checked on the way and at the end. */
export async function simulate(ground: Ground, seed: number, options: Options): Promise<History> {
  const equipment = await ground.equipment(options.sabotage);
  await ground.clear();
  const simulation = new Simulation(ground, equipment, seed, options);
  try {
    return await simulation.run();
  } finally {
    await simulation.close();
  }
}

class Simulation {
  readonly #seed: number;
  readonly #ground: Ground;
  readonly #equipment: Equipment;
  readonly #options: Options;
  readonly #dice: Dice;
  readonly #character: Character;
  readonly #faults: ReadonlySet<Fault>;
  /** Of all steps, that strike from outside; and of steps at a point, that strike there. */
  readonly #faultRate: number;
  readonly #director = new Director();
  readonly #cast: Cast;
  readonly #checks: Checks;
  readonly #trace: string[] = [];
  /** Jobs whose worker died. */
  readonly #orphans: string[] = [];
  /** Takes back what was done to this process, and to the equipment. */
  readonly #undo: (() => void)[] = [];
  #phase: "opening" | "acting" | "resting" = "opening";
  #violation: string | undefined;
  #serial = 0;
  /** Nothing happened since a worker whose wall clock is so far off found no job: BullMQ's delays go by it. */
  readonly #jobless = new Set<number>();
  /** Something may have been published with this move. */
  #published = false;
  /** The node that does all that is left at the end. */
  #last: NodeActor | undefined;

  constructor(ground: Ground, equipment: Equipment, seed: number, options: Options) {
    this.#ground = ground;
    this.#equipment = equipment;
    this.#seed = seed;
    this.#options = options;
    this.#dice = new Dice(seed);
    const drawn = character(this.#dice, seed);
    // A node that claims in another way knows of no limits.
    this.#character = options.rig ? { ...drawn, limits: false } : drawn;
    const { faults, rate } = chooseFaults(this.#dice, this.#character, options.faults);
    this.#faults = faults;
    this.#faultRate = rate;

    const { observer } = equipment;
    this.#checks = new Checks(observer, internalsOf(observer).link.client, this.#character);
    this.#undo.push(install(this.#director, () => this.#dice.next()));
    chance.bytes = (count) => this.#dice.bytes(count);
    const parts = { director: this.#director };
    this.#cast = new Cast(equipment, {
      ...parts,
      pass: (actor, point, key) => this.#pass(actor, point, key),
      wrong: (what) => this.#wrong(what),
      began: (task, fence) => this.#wrongIf(this.#checks.began(task, fence)),
      // Nor of a look ahead.
      bursts: options.rig ? NO_BURSTS : BURSTS,
    });
    for (const { name } of this.#cast.all) equipment.asNew(name as Role);
    equipment.user = {
      ...parts,
      pass: (role: Role, point, key) => this.#pass(this.#cast.named(role), point, key),
    };
    for (const node of this.#cast.nodes) {
      const undo = options.rig?.(equipment.of(node.name as Role), (point) => this.#pass(node, point));
      if (undo) this.#undo.push(undo);
    }
    ground.listen((channel, text) => {
      for (const { actor, ears } of this.#cast.listeners) post(actor, ears, channel, text);
    });
  }

  async run(): Promise<History> {
    try {
      await this.#open();
      await this.#act();
      await this.#rest();
    } catch (error) {
      this.#wrong((error as Error).message);
    }
    return {
      seed: this.#seed,
      violation: this.#violation,
      trace: this.#trace,
      occurrences: await this.#occurrences(),
      digest: this.#options.digest ? await digest(this.#ground.admin) : undefined,
    };
  }

  async close(): Promise<void> {
    for (const undo of this.#undo) undo();
    chance.bytes = undefined;
    this.#equipment.user = undefined;
    await this.#cast.close();
    await this.#ground.clear();
  }

  #wrong(what: string): void {
    this.#violation ??= what;
  }

  #wrongIf(what: string | undefined): void {
    if (what !== undefined) this.#wrong(what);
  }

  async #occurrences(): Promise<number> {
    const { observer } = this.#equipment;
    return (await internalsOf(observer).link.client.keys(internalsOf(observer).keys.queue(QUEUE).run("*")))
      .length;
  }

  /** A few tasks, and then the nodes. */
  async #open(): Promise<void> {
    await this.#cast.ready();
    const { observer, clock } = this.#equipment;
    await clock.set(START);
    for (const id of IDS) {
      const put = putOf(this.#dice, this.#character, id);
      if (put.allows) this.#checks.mayOverlap.add(id);
      this.#say("opening", put.text);
      await put.run(observer);
    }
    if (this.#character.limits) {
      const limit = limitOf(this.#dice, "a");
      this.#say("opening", limit.text);
      await limit.run(observer);
      await this.#checks.places.limited();
    }
    this.#phase = "acting";
    for (const node of this.#cast.nodes) await this.#settled(node.start());
  }

  async #act(): Promise<void> {
    for (let step = 1; step <= STEPS && !this.#violation; step++) {
      await this.#step();
      if (step % CHECK_EVERY === 0) await this.#check();
    }
  }

  /** What one step is, the dice say. */
  async #step(): Promise<void> {
    const dice = this.#dice;
    const moves = this.#moves();
    const idle = this.#cast.clients.filter(({ busy, frozen }) => !busy && !frozen);
    const free = this.#freeWorkers();
    const roll = dice.next();
    if (dice.chance(this.#faultRate)) return this.#strikeAround();
    if (roll < 0.7 && moves.length > 0) return this.#go(moves);
    if (roll < 0.8 && idle.length > 0) return this.#begin(dice.pick(idle));
    if (roll < 0.92 && free.length > 0) return void (await this.#take(dice.pick(free)));
    return this.#passTime();
  }

  /** By actor: whoever has much to do is not to come to act more often. */
  #moves(): Move[][] {
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

  /** At the end one node does it all: the others only finish what they have begun. */
  #stopped(actor: CastMember): boolean {
    return this.#phase === "resting" && actor instanceof NodeActor && actor !== this.#last;
  }

  async #go(moves: readonly Move[][]): Promise<void> {
    const { actor, park, timer, message } = this.#dice.pick(this.#dice.pick(moves));
    if (timer) {
      this.#say(actor.name, "timer");
      return this.#settled(this.#director.fire(timer));
    }
    if (message !== undefined) return this.#deliver(actor, message);
    if (park && this.#phase === "acting" && this.#dice.chance(this.#faultRate)) {
      const fault = this.#dice.pick(AT_A_POINT);
      if (this.#faults.has(fault) && (await this.#strike(actor, park, fault))) return;
    }
    // What is decided already and not yet done is the worst moment for these.
    if (
      park?.point === "before commit" &&
      this.#phase === "acting" &&
      this.#dice.chance(3 * this.#faultRate)
    ) {
      const faults = (["job retried", "clock back"] as const).filter((fault) => this.#faults.has(fault));
      if (faults.length > 0) await this.#surround(this.#dice.pick(faults));
    }
    if (park) return this.#letGo(actor, park);
  }

  async #letGo(actor: CastMember, park: Park): Promise<void> {
    actor.release(park);
    const settles = park.point === "before settle-run" && actor instanceof CarillonWorkerActor;
    const outdated = settles ? await this.#checks.outdated(actor.attempt) : undefined;
    if (ADDS_JOBS.test(park.point)) this.#jobless.clear();
    this.#published ||= PUBLISHES.test(park.point);
    const fails = park.point === "handler" && this.#phase === "acting" && this.#dice.chance(0.4);
    this.#say(actor.name, fails ? `${park.point} fails` : park.point);
    const turns = park.point.endsWith("lock") ? MUTEX_TURNS : 1;
    await this.#move(actor, fails ? () => park.fail("it failed") : park.go, turns);
    if (outdated) this.#wrongIf(await outdated());
    if (park.point.startsWith("before ")) await this.#checks.moved(park.point);
  }

  async #deliver(actor: CastMember, index: number): Promise<void> {
    const [message] = actor.mail.splice(index, 1);
    if (!message || !("ears" in actor)) return;
    const { channel, text } = message;
    const lost = this.#phase === "acting" && this.#faults.has("message lost") && this.#dice.chance(0.3);
    this.#say(actor.name, `${lost ? "does not hear" : "hears"} ${text}`);
    if (lost) return this.#options.coverage.hit(`${actor.kind} message`, "message lost");
    return this.#move(actor, () => actor.ears?.emit("message", channel, text));
  }

  /** Where an actor comes to a failpoint. */
  async #pass(actor: CastMember, point: string, key?: string): Promise<void> {
    if (this.#phase === "opening") return;
    this.#options.coverage.reached(`${actor.kind} ${point}`);
    if (point.startsWith("after") && (this.#phase === "resting" || !this.#dice.chance(STOP_AFTER))) return;
    return this.#director.park(actor, point, key);
  }

  /** Returns whether it could: not everything can be lost everywhere. */
  async #strike(actor: CastMember, park: Park, fault: FaultAtPoint): Promise<boolean> {
    if (fault === "lost" && NOT_OURS.test(park.point)) return false;
    this.#options.coverage.hit(`${actor.kind} ${park.point}`, fault);
    this.#say(actor.name, `${fault} ${park.point}`);
    if (fault === "freezes") actor.frozen = true;
    else if (fault === "dies") await this.#kill(actor);
    else {
      actor.release(park);
      await this.#move(actor, () => park.fail("Connection is closed."), MUTEX_TURNS);
    }
    return true;
  }

  async #kill(actor: CastMember): Promise<void> {
    if (actor instanceof WorkerActor && actor.job !== undefined) this.#orphans.push(actor.job);
    actor.abandon();
    this.#equipment.asNew(actor.name as Role);
    if (actor instanceof NodeActor) await this.#settled(actor.start());
    else if (actor instanceof CarillonWorkerActor) await this.#settled(actor.restart());
  }

  /** A fault that nobody brought about by standing where they stood; it counts for all of them. */
  async #strikeAround(): Promise<void> {
    const fault = this.#dice.pick(AROUND);
    return this.#faults.has(fault) ? this.#surround(fault) : this.#passTime();
  }

  async #surround(fault: FaultAround): Promise<void> {
    const what = await strikeFrom(fault, {
      ...{ ground: this.#ground, equipment: this.#equipment, cast: this.#cast, dice: this.#dice },
      ...{ orphans: this.#orphans, jump: (ms) => this.#jump(ms) },
    });
    if (what === undefined) return;
    this.#jobless.clear();
    this.#say(fault, what);
    for (const { kind, parks } of this.#cast.all)
      for (const { point } of parks) this.#options.coverage.hit(`${kind} ${point}`, fault);
  }

  /** The clock of Redis is set; what is to expire goes by it. */
  async #jump(ms: number): Promise<string> {
    const { clock, observer } = this.#equipment;
    await clock.advance(ms);
    await pass(observer, internalsOf(observer).keys.queue(QUEUE), ms);
    return String(ms);
  }

  async #begin(client: ClientActor): Promise<void> {
    this.#serial += 1;
    const operation = operationOf(this.#dice, this.#character, this.#serial);
    if (operation.allows) this.#checks.mayOverlap.add(operation.id);
    this.#say(client.name, operation.text);
    const said = (how: string) => this.#say(client.name, `${operation.what} ${operation.id}: ${how}`);
    await this.#move(client, () => {
      client.perform(operation).then(said, (error: unknown) => {
        const { code = "" } = error as { code?: string };
        said(code || String(error));
        if (!EXPECTED.has(code)) this.#wrong(`${operation.text}: ${String(error)}`);
      });
    });
    if (operation.what === "limit") await this.#checks.places.limited();
  }

  #freeWorkers(): WorkerActor[] {
    return this.#cast.workers.filter(
      ({ job, frozen, parks, skew }) => !job && !frozen && parks.length === 0 && !this.#jobless.has(skew),
    );
  }

  /** Returns whether there was a job. */
  async #take(worker: WorkerActor): Promise<boolean> {
    let taken = true;
    await this.#move(worker as CastMember, () => {
      worker.take().then(
        (was) => {
          taken = was;
        },
        (error: unknown) => this.#wrong(`${worker.name}: ${String(error)}`),
      );
    });
    if (!taken) this.#jobless.add(worker.skew);
    this.#say(worker.name, taken ? `takes ${worker.job}` : "finds no job");
    return taken;
  }

  async #passTime(): Promise<void> {
    const next = this.#nextTimer();
    const wait = next === undefined ? 1_000 : Math.max(1, next - this.#director.elapsed);
    const ms = this.#dice.chance(0.6)
      ? Math.min(wait, 60_000)
      : this.#dice.pick([1, 20, 150, 999, 3_000, 5_000, 10_000, 25_000, 61_000]);
    await this.#advance(ms);
  }

  #nextTimer(): number | undefined {
    const moving = this.#cast.all.filter((actor) => !actor.frozen && !this.#stopped(actor));
    const times = moving.flatMap(({ timers }) => [...timers].map(({ at }) => at));
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  async #advance(ms: number): Promise<void> {
    this.#director.elapsed += ms;
    this.#jobless.clear();
    await this.#jump(ms);
    this.#say("time", `+${ms}`);
  }

  /** No more faults: whatever is left to do is done, and no occurrence waits for ever. */
  async #rest(): Promise<void> {
    if (this.#violation) return;
    this.#phase = "resting";
    this.#last = this.#dice.pick(this.#cast.nodes);
    for (const actor of this.#cast.all) actor.frozen = false;
    for (const job of this.#orphans.splice(0)) await this.#cast.workers[0]?.rescue(job);
    const end = this.#director.elapsed + REST_WITHIN;
    for (let step = 0; step < STEPS_AT_ONCE && this.#director.elapsed < end && !this.#violation; step++) {
      const moves = this.#moves();
      const [worker] = this.#freeWorkers();
      if (moves.length > 0) await this.#go(moves);
      else if (worker) await this.#take(worker);
      else if ((await this.#checks.unrest(this.#equipment.clock.now)) === "") return this.#check();
      else {
        const next = this.#nextTimer() ?? this.#director.elapsed;
        await this.#advance(Math.min(Math.max(1, next - this.#director.elapsed), 5_000));
        step = 0;
      }
    }
    this.#wrong(`nothing comes to rest: ${await this.#checks.unrest(this.#equipment.clock.now)}`);
  }

  async #check(): Promise<void> {
    try {
      await this.#checks.all();
    } catch (error) {
      this.#wrong((error as Error).message);
    }
  }

  #move(actor: CastMember, act: () => void, turns?: number): Promise<void> {
    return this.#settled(this.#director.move(actor, act, turns));
  }

  /** What was published meanwhile has been heard too. */
  async #settled(move: Promise<void>): Promise<void> {
    await move;
    if (this.#published) await this.#ground.caughtUp();
    this.#published = false;
  }

  #say(who: string, what: string): void {
    this.#trace.push(`${this.#director.elapsed} ${who} ${what}`);
  }
}
