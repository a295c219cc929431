import { internalsOf } from "@carillon/store/internal";
import type { Park } from "./actor.js";
import { Cast, type CastMember, type ClientActor } from "./cast.js";
import { Checks } from "./checks.js";
import { Dice } from "./dice.js";
import { digest } from "./digest.js";
import { Director, MUTEX_TURNS, START } from "./director.js";
import { post } from "./ears.js";
import type { Equipment, Role } from "./equipment.js";
import {
  AROUND,
  AT_A_POINT,
  chooseFaults,
  type Fault,
  type FaultAround,
  type FaultAtPoint,
  LATE,
  strikeFrom,
} from "./faults.js";
import type { Ground } from "./ground.js";
import type { History, Options } from "./history.js";
import { type Move, Moves } from "./moves.js";
import { NodeActor } from "./node-actor.js";
import { type Character, character, IDS, limitOf, operationOf, putOf, QUEUE } from "./operations.js";
import { GHOSTS } from "./outside.js";
import { chance } from "./seams.js";
import {
  ADDS_JOBS,
  CHECK_EVERY,
  CLAIMS,
  EXPECTED,
  FAILING,
  LATE_RATE,
  LATE_SEEDS,
  NOT_OURS,
  PLAIN_CLAIMS,
  PUBLISHES,
  REST_WITHIN,
  STEPS,
  STEPS_AT_ONCE,
  STOP_AFTER,
} from "./settings.js";
import { install } from "./virtual-globals.js";
import { pass } from "./virtual-mutex.js";
import { CarillonWorkerActor, WorkerActor } from "./worker-actor.js";

/**
 * Runs one history: actors interleaved by the seed, faults where it says. Checks every promise on the way and at the
 * end.
 */
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
  /** Share of all steps at which a fault strikes from outside, and of steps at a point at which one strikes there. */
  readonly #faultRate: number;
  /** Dice of their own: without this fault a seed makes the same history. */
  readonly #late: Dice;
  readonly #copiesArrive: boolean;
  readonly #director = new Director();
  readonly #cast: Cast;
  readonly #moves: Moves;
  readonly #checks: Checks;
  readonly #trace: string[] = [];
  /** Jobs whose worker died. */
  readonly #orphans: string[] = [];
  /** Restores this process and the equipment. */
  readonly #undo: (() => void)[] = [];
  #phase: "opening" | "acting" | "resting" = "opening";
  #violation: string | undefined;
  #serial = 0;
  /** Whether something may have been published with this move. */
  #published = false;

  constructor(ground: Ground, equipment: Equipment, seed: number, options: Options) {
    this.#ground = ground;
    this.#equipment = equipment;
    this.#seed = seed;
    this.#options = options;
    this.#dice = new Dice(seed);
    const drawn = character(this.#dice, seed);
    // A node that claims in another way knows no limits or freezes.
    this.#character = options.rig ? { ...drawn, limits: false, freezes: false, more: false } : drawn;
    const chosen = chooseFaults(this.#dice, this.#character, options.faults);
    [this.#faults, this.#faultRate] = [chosen.faults, chosen.rate];

    this.#late = new Dice(seed + LATE_SEEDS);
    this.#copiesArrive = options.faults?.includes(LATE) ?? this.#late.chance(0.6);
    equipment.copies.forget();

    const { observer } = equipment;
    this.#checks = new Checks(observer, internalsOf(observer).link.client, this.#character);
    this.#undo.push(install(this.#director, () => this.#dice.next()));
    chance.bytes = (count) => this.#dice.bytes(count);
    this.#cast = new Cast(equipment, {
      director: this.#director,
      pass: (actor, point, key) => this.#pass(actor, point, key),
      wrong: (what) => this.#wrong(what),
      began: (task, fence) => this.#wrongIf(this.#checks.began(task, fence)),
      claims: options.rig ? PLAIN_CLAIMS : CLAIMS,
    });
    this.#moves = new Moves(this.#cast, this.#director);
    for (const { name } of this.#cast.all) equipment.asNew(name as Role);
    const passes = (role: Role, point: string, key?: string) =>
      this.#pass(this.#cast.named(role), point, key);
    equipment.user = { director: this.#director, pass: passes };
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
      occurrences: (await this.#checks.freezes.runs()).size,
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

  /** Creates a few tasks, then starts the nodes. */
  async #open(): Promise<void> {
    await this.#cast.ready();
    const { observer, clock } = this.#equipment;
    await clock.set(START);
    for (const id of IDS) {
      const put = putOf(this.#dice, this.#character, id);
      if (put.allows) this.#checks.mayOverlap.add(id);
      this.#say("opening", put.text);
      await put.run(observer, this.#checks.freezes);
    }
    if (this.#character.limits) {
      const limit = limitOf(this.#dice, "a");
      this.#say("opening", limit.text);
      await limit.run(observer, this.#checks.freezes);
      await this.#checks.places.limited();
    }
    this.#phase = "acting";
    for (const node of this.#cast.nodes) await this.#settled(node.start());
  }

  async #act(): Promise<void> {
    const { steps = STEPS } = this.#options;
    for (let step = 1; step <= steps && !this.#violation; step++) {
      if (this.#copiesArrive && this.#late.chance(LATE_RATE)) await this.#deliverLate();
      await this.#step();
      if (step % CHECK_EVERY === 0) await this.#check();
    }
  }

  async #deliverLate(): Promise<void> {
    const frozen = await this.#checks.freezes.step("before commit", this.#equipment.clock.now);
    const found = await this.#equipment.copies.deliver(this.#ground.admin, this.#late);
    if (!found) return;
    this.#say("late", found.name);
    this.#moves.jobless.clear();
    await this.#ground.caughtUp();
    this.#options.coverage.hit(`late ${found.name}`, LATE);
    if (found.changed) this.#wrong(`a late copy of ${found.name} changed something`);
    await frozen?.();
    await this.#checks.moved(`before ${found.name}`);
  }

  /** One step, chosen by the dice. */
  async #step(): Promise<void> {
    const dice = this.#dice;
    const moves = this.#moves.all();
    const idle = this.#cast.clients.filter(({ busy, frozen }) => !busy && !frozen);
    const free = this.#moves.freeWorkers();
    const roll = dice.next();
    if (dice.chance(this.#faultRate)) return this.#strikeAround();
    if (roll < 0.7 && moves.length > 0) return this.#go(moves);
    if (roll < 0.8 && idle.length > 0) return this.#begin(dice.pick(idle));
    if (roll < 0.92 && free.length > 0) return void (await this.#take(dice.pick(free)));
    return this.#passTime();
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
    // The worst moment for these faults: the decision is made, and not committed.
    const worst = (["job retried", "clock back"] as const).filter((fault) => this.#faults.has(fault));
    if (
      park?.point === "before commit" &&
      this.#phase === "acting" &&
      this.#dice.chance(3 * this.#faultRate) &&
      worst.length > 0
    ) {
      await this.#surround(this.#dice.pick(worst));
      await this.#letGo(actor, park);
      return this.#check();
    }
    if (park) return this.#letGo(actor, park);
  }

  async #letGo(actor: CastMember, park: Park): Promise<void> {
    actor.release(park);
    const settles = park.point === "before settle-run" && actor instanceof CarillonWorkerActor;
    const frozen = await this.#checks.freezes.step(park.point, this.#equipment.clock.now);
    const outdated = settles ? await this.#checks.outdated(actor.attempt) : undefined;
    if (ADDS_JOBS.test(park.point)) this.#moves.jobless.clear();
    this.#published ||= PUBLISHES.test(park.point);
    const fails =
      park.point === "handler" &&
      this.#phase === "acting" &&
      this.#dice.chance(this.#options.failing ?? FAILING);
    this.#say(actor.name, fails ? `${park.point} fails` : park.point);
    const turns = /(lock|renew)$/.test(park.point) ? MUTEX_TURNS : 1;
    await this.#move(actor, fails ? () => park.fail("it failed") : park.go, turns);
    if (outdated) this.#wrongIf(await outdated());
    await frozen?.();
    if (park.point === "before change-settings") await this.#checks.places.limited();
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

  /** Called when an actor reaches a failpoint. */
  async #pass(actor: CastMember, point: string, key?: string): Promise<void> {
    if (this.#phase === "opening") return;
    this.#options.coverage.reached(`${actor.kind} ${point}`);
    if (point.startsWith("after") && (this.#phase === "resting" || !this.#dice.chance(STOP_AFTER))) return;
    return this.#director.park(actor, point, key);
  }

  /** Returns whether the fault was possible: not everything can be lost everywhere. */
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

  /** A fault that is independent of where actors stand, and counts for all of their points. */
  async #strikeAround(): Promise<void> {
    const fault = this.#dice.pick(AROUND);
    return this.#faults.has(fault) ? this.#surround(fault) : this.#passTime();
  }

  async #surround(fault: FaultAround): Promise<void> {
    const what = await strikeFrom(fault, {
      ground: this.#ground,
      equipment: this.#equipment,
      cast: this.#cast,
      dice: this.#dice,
      orphans: this.#orphans,
      jump: (ms) => this.#jump(ms),
    });
    if (what === undefined) return;
    if (fault === "job retried") for (const run of what.split(" ")) this.#checks.progress.retried.add(run);
    this.#moves.jobless.clear();
    this.#say(fault, what);
    for (const { kind, parks } of this.#cast.all)
      for (const { point } of parks) this.#options.coverage.hit(`${kind} ${point}`, fault);
  }

  /** Sets the clock of Redis; expiry follows it. */
  async #jump(ms: number): Promise<string> {
    const { clock, observer } = this.#equipment;
    const before = clock.now;
    await clock.advance(ms);
    this.#checks.freezes.passed(Math.max(before, clock.now));
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
      client.perform(operation, this.#checks.freezes).then(said, (error: unknown) => {
        const { code = "" } = error as { code?: string };
        said(code || String(error));
        if (!EXPECTED.has(code)) this.#wrong(`${operation.text}: ${String(error)}`);
      });
    });
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
    if (!taken) this.#moves.jobless.add(worker.skew);
    this.#say(worker.name, taken ? `takes ${worker.job}` : "finds no job");
    return taken;
  }

  async #passTime(): Promise<void> {
    const next = this.#moves.nextTimer();
    const wait = next === undefined ? 1_000 : Math.max(1, next - this.#director.elapsed);
    const ms = this.#dice.chance(0.6)
      ? Math.min(wait, 60_000)
      : this.#dice.pick([1, 20, 150, 999, 3_000, 5_000, 10_000, 25_000, 61_000]);
    await this.#advance(ms);
  }

  async #advance(ms: number): Promise<void> {
    this.#director.elapsed += ms;
    this.#moves.jobless.clear();
    await this.#jump(ms);
    this.#say("time", `+${ms}`);
  }

  /** Ends the faults: all remaining work is done, and no occurrence waits for ever. */
  async #rest(): Promise<void> {
    if (this.#violation) return;
    this.#phase = "resting";
    this.#moves.last = this.#dice.pick(this.#cast.nodes);
    for (const actor of this.#cast.all) actor.frozen = false;
    for (const ghost of GHOSTS) await this.#equipment.observer.registry.removeNode(ghost);
    for (const job of this.#orphans.splice(0)) await this.#cast.workers[0]?.rescue(job);
    const end = this.#director.elapsed + REST_WITHIN;
    for (let step = 0; step < STEPS_AT_ONCE && this.#director.elapsed < end && !this.#violation; step++) {
      const moves = this.#moves.all();
      const [worker] = this.#moves.freeWorkers();
      if (moves.length > 0) await this.#go(moves);
      else if (worker) await this.#take(worker);
      else if (await this.#thaw()) continue;
      else if ((await this.#checks.unrest(this.#equipment.clock.now)) === "") return this.#check();
      else {
        const next = this.#moves.nextTimer() ?? this.#director.elapsed;
        await this.#advance(Math.min(Math.max(1, next - this.#director.elapsed), 5_000));
        step = 0;
      }
    }
    this.#wrong(`nothing comes to rest: ${await this.#checks.unrest(this.#equipment.clock.now)}`);
  }

  /** Lifts the freezes of clients, those of their last operations too. Returns whether there was one. */
  async #thaw(): Promise<boolean> {
    const lifted = await this.#checks.freezes.liftAll();
    if (lifted) await this.#ground.caughtUp();
    return lifted;
  }

  async #check(): Promise<void> {
    try {
      const wentBack = this.#faults.has("clock back");
      await this.#checks.all(wentBack ? undefined : this.#equipment.clock.now);
    } catch (error) {
      this.#wrong((error as Error).message);
    }
  }

  #move(actor: CastMember, act: () => void, turns?: number): Promise<void> {
    return this.#settled(this.#director.move(actor, act, turns));
  }

  /** Waits until messages published meanwhile have arrived. */
  async #settled(move: Promise<void>): Promise<void> {
    await move;
    if (this.#published) await this.#ground.caughtUp();
    this.#published = false;
  }

  #say(who: string, what: string): void {
    this.#trace.push(`${this.#director.elapsed} ${who} ${what}`);
  }
}
