import { isCarillonError } from "@carillon/core";
import type { Many, Operation } from "../../src/operation.js";
import { perform } from "../../src/operator.js";
import { type Rows, rowsOf } from "./rows.js";
import { forgetScripts, type Hook, type Sent, tap } from "./wire.js";
import type { Program, World } from "./world.js";

/** A call of an operation. */
export interface Call {
  readonly name: string;
  readonly operation: Operation;
  readonly input: object;
}

type Trial = readonly [title: string, faults: () => Promise<string[]>];

/** The end of a call. */
interface Ended {
  readonly answer?: unknown;
  readonly error?: unknown;
}

const DEAD = "this program is dead";

/** An event at a step of a call, which is one of its writes. */
type Event = (sent: Sent) => Promise<unknown>;

/** All operations that a battery knows, by name. */
export type Known = ReadonlyMap<string, Operation>;

/**
 * A call with an example input.
 *
 * @param given fields; those that the operation does not know are left out. Default: its example
 */
export function callOf(world: World, known: Known, name: string, given?: object): Call {
  const operation = known.get(name);
  if (!operation) throw new Error(`no operation is called ${name}.`);
  const { shape } = operation.input;
  const parts = [...operation.http.matchAll(/:(\w+)/g)].map(([, part]) => part as string);
  const from = (given ?? operation.example ?? {}) as Record<string, unknown>;
  const input = Object.keys(shape).flatMap((field) => {
    if (field in from) return from[field] === undefined ? [] : [[field, from[field]] as const];
    const isNeeded = parts.includes(field) || !shape[field]?.safeParse(undefined).success;
    if (!isNeeded) return [];
    const { options } = shape[field] as { options?: readonly unknown[] };
    const [, noun = ""] = new RegExp(`(\\w+)/:${field}\\b`).exec(operation.http) ?? [];
    const value = world.valueOf(name, noun, field) ?? options?.[0];
    if (value === undefined) throw new Error(`${name}: declare an example with a ${field}.`);
    return [[field, value] as const];
  });
  return { name, operation, input: Object.fromEntries(input) };
}

/** The battery of one operation: each trial returns what it broke. */
export class Battery {
  readonly #world: World;
  readonly #known: Known;
  readonly call: Call;
  readonly #sequences = new Map<string, Sequence>();
  #undoable: Promise<boolean> | undefined;

  constructor(world: World, known: Known, name: string) {
    this.#world = world;
    this.#known = known;
    this.call = callOf(world, known, name);
  }

  get #many(): Many | undefined {
    const { once } = this.call.operation;
    return typeof once === "object" ? once : undefined;
  }

  /** Calls that come between its steps: itself, and those that it declares. */
  get #others(): Call[] {
    const against = this.#many?.against ?? [];
    return [
      this.call,
      ...against.map(([name, input = {}]) =>
        callOf(this.#world, this.#known, name, { ...this.call.input, ...input }),
      ),
    ];
  }

  async #perform({ client }: Program, { operation, input }: Call): Promise<Ended> {
    try {
      return { answer: await perform(client, operation, input, { by: "ann" }) };
    } catch (error) {
      return { error };
    }
  }

  /** The state after these calls, one after the other. */
  async #inSequence(calls: readonly Call[], undone: boolean): Promise<Sequence> {
    const key = `${calls.map(({ name, input }) => name + JSON.stringify(input)).join(" then ")} ${undone}`;
    const known = this.#sequences.get(key);
    if (known) return known;
    const run = async () => {
      await this.#world.again();
      const ended: Ended[] = [];
      for (const call of calls) ended.push(await this.#alone(call));
      if (undone) ended.push(await this.#undo());
      return ended;
    };
    const ended = await run();
    const content = await this.#world.content();
    await this.#world.left();
    let rows: Promise<Rows> | undefined;
    const made = { ended, content, rows: () => (rows ??= run().then(() => this.#rows())) };
    this.#sequences.set(key, made);
    return made;
  }

  async #rows(): Promise<Rows> {
    const rows = await rowsOf(this.#world, this.#known);
    await this.#world.left();
    return rows;
  }

  async #alone(call: Call): Promise<Ended> {
    const program = this.#world.program();
    const ended = await this.#perform(program, call);
    await program.store.changes.settled();
    return ended;
  }

  /** Undoes the newest change that can be undone. */
  async #undo(): Promise<Ended> {
    const id = await this.#world.undoable();
    return id === undefined ? {} : this.#alone(callOf(this.#world, this.#known, "changes.undo", { id }));
  }

  /** Names of the writes of the call, in their order. */
  async writes(): Promise<string[]> {
    await this.#world.again();
    const names: string[] = [];
    const ended = await this.#tapped(async (sent) => {
      if (sent.writes) names.push(sent.name);
      return sent.pass();
    });
    await this.#world.left();
    if (ended.error) throw ended.error;
    return names;
  }

  /** Whether the call changes anything, and the number of its writes that do. */
  async steps(): Promise<{ changes: boolean; steps: number }> {
    await this.#world.again();
    const first = await this.#world.content();
    let [steps, newest] = [0, Promise.resolve<unknown>(undefined)];
    const step = async (sent: Sent) => {
      const before = await this.#world.content();
      await sent.pass().catch(() => {});
      if ((await this.#world.content()) !== before) steps += 1;
    };
    const ended = await this.#tapped((sent) => {
      if (!sent.writes) return sent.pass();
      newest = newest.then(() => step(sent));
      return newest;
    });
    await newest;
    const changes = (await this.#world.content()) !== first;
    await this.#world.left();
    if (ended.error) throw ended.error;
    return { changes, steps };
  }

  /** The call, in a program whose commands go through a hook. */
  async #tapped(hook: Hook): Promise<Ended> {
    const program = this.#world.program();
    await program.store.registry.queues();
    tap(program.store, hook);
    const ended = await this.#perform(program, this.call);
    await program.store.changes.settled();
    return ended;
  }

  /** The call, with an event at its `at`th write. */
  #with(at: number, event: Event): Promise<Ended> {
    let n = 0;
    return this.#tapped((sent) => (sent.writes && n++ === at ? event(sent) : sent.pass()));
  }

  /** The call, in a program that dies before its `at`th write. */
  async #killed(at: number): Promise<void> {
    let [n, dead] = [0, false];
    await this.#tapped(async (sent) => {
      if (sent.writes && n++ === at) dead = true;
      if (dead) throw new Error(DEAD);
      return sent.pass();
    });
  }

  /**
   * Trials by title.
   * @param every each kind of them at each write of the call; otherwise each kind at one write, another one than the kind before it
   */
  async *trials(every: boolean): AsyncGenerator<Trial> {
    const names = await this.writes();
    yield ["twice at one instant", () => this.#twice()];
    for (const [at, name] of names.entries())
      for (const [kind, trial] of [...this.#trialsAt(at, `${name} (${at + 1})`)].entries())
        if (every || at === kind % names.length) yield trial;
    for (const other of this.#others.slice(1))
      yield [`its first write delivered again after ${other.name}`, () => this.#late(other)];
  }

  /** One trial of each kind. */
  *#trialsAt(at: number, name: string): Generator<Trial> {
    yield [`killed before ${name}, and repeated`, () => this.#killedAndRepeated(at)];
    yield [`${name} refused by a full Redis, and repeated`, () => this.#full(at)];
    yield [`Redis restarts after ${name}`, () => this.#restarted(at)];
    for (const other of this.#others) {
      const what = `${other.name} ${other === this.call ? "by another" : JSON.stringify(other.input)}`;
      // Before any other write is after the one before it.
      yield [
        `overtaken by ${what} before ${name}`,
        async () => (at === 0 ? this.#overtaken(at, other, "before") : []),
      ];
      yield [`overtaken by ${what} after ${name}`, () => this.#overtaken(at, other, "after")];
      if (other !== this.call)
        yield [`killed before ${name}, then ${what}`, () => this.#killedThen(at, other)];
    }
  }

  async #twice(): Promise<string[]> {
    await this.#world.again();
    const programs = [this.#world.program(), this.#world.program()];
    await Promise.all(programs.map(({ store }) => store.registry.queues()));
    const ended = await Promise.all(programs.map((one) => this.#perform(one, this.call)));
    await Promise.all(programs.map(({ store }) => store.changes.settled()));
    return this.#check(ended, [this.call, this.call]);
  }

  async #killedAndRepeated(at: number): Promise<string[]> {
    await this.#world.again();
    await this.#killed(at);
    const again = await this.#alone(this.call);
    return this.#check([{ error: DEAD }, again], [this.call, this.call]);
  }

  async #killedThen(at: number, other: Call): Promise<string[]> {
    await this.#world.again();
    await this.#killed(at);
    const ended: Ended[] = [{ error: DEAD }, await this.#alone(other)];
    const calls = [this.call, other];
    if (this.#many?.leaves === "held") {
      ended.push(await this.#alone(this.call));
      calls.push(this.call);
    }
    return this.#check(ended, calls);
  }

  async #full(at: number): Promise<string[]> {
    await this.#world.again();
    const first = await this.#with(at, async () => {
      throw new Error("OOM command not allowed when used memory > 'maxmemory'.");
    });
    if (!first.error) return this.#check([first], [this.call]);
    const again = await this.#alone(this.call);
    return this.#check([first, again], [this.call, this.call]);
  }

  async #restarted(at: number): Promise<string[]> {
    await this.#world.again();
    const ended = await this.#with(at, async (sent) => {
      await sent.copy();
      await forgetScripts(this.#world.redis);
      throw new Error("Connection is closed.");
    });
    // The repetition finds it done: its answer may say so.
    return this.#check([ended], [this.call], { counts: false });
  }

  async #overtaken(at: number, other: Call, when: "before" | "after"): Promise<string[]> {
    // Awaited wherever it is asked: it uses the same world.
    if (this.call !== other) this.#undoable ??= this.#isUndoable();
    const undoable = this.call !== other && (await this.#undoable);
    const run = async (undone: boolean) => {
      await this.#world.again();
      let between: Ended = {};
      const ended = await this.#with(at, async (sent) => {
        if (when === "before") between = await this.#alone(other);
        if (when === "before") return sent.pass();
        // Its answer is still on the way.
        const answer = await sent.copy();
        between = await this.#alone(other);
        return answer;
      });
      const all = [ended, between];
      if (undone) all.push(await this.#undo());
      return this.#check(all, [this.call, other], { undone });
    };
    return [...(await run(false)), ...(undoable ? await run(true) : [])];
  }

  /** Whether the call leaves a change that can be undone. */
  async #isUndoable(): Promise<boolean> {
    await this.#world.again();
    await this.#alone(this.call);
    const id = await this.#world.undoable();
    await this.#world.left();
    return id !== undefined;
  }

  async #late(other: Call): Promise<string[]> {
    await this.#world.again();
    let copy: Sent["copy"] | undefined;
    await this.#tapped((sent) => {
      if (sent.writes) copy ??= sent.copy;
      return sent.pass();
    });
    await this.#alone(other);
    const before = await this.#world.content();
    await copy?.().catch(() => {});
    const after = await this.#world.content();
    await this.#world.left();
    return before === after ? [] : ["the late copy changed something"];
  }

  /**
   * Compares with the states after these calls in each sequence. A call that answered success is in all sequences. One that was refused, or
   * whose program died, may be left out, also for some things only.
   */
  async #check(
    ended: readonly Ended[],
    calls: readonly Call[],
    { undone = false, counts = true } = {},
  ): Promise<string[]> {
    const content = await this.#world.content();
    const kept = await this.#world.save();
    await this.#world.left();
    const sequences: Sequence[] = [];
    for (const order of ordersOf(calls, ended.map(isPartial)))
      sequences.push(await this.#inSequence(order, undone));
    const faults = uncoded(ended);
    // Equal states have equal futures.
    if (!sequences.some((one) => one.content === content)) {
      await this.#world.again(kept);
      const rows = await this.#rows();
      const wanted: Rows[] = [];
      let differing = differences(rows, wanted);
      for (const one of sequences) {
        wanted.push(await one.rows());
        differing = differences(rows, wanted);
        if (differing.length === 0) break;
      }
      faults.push(...differing);
    }
    if (counts && calls.every((call) => call === this.call) && !ended.some(({ error }) => error)) {
      const [got, sum] = [ended, (await this.#inSequence(calls, undone)).ended].map((one) =>
        countOf(one, this.#many !== undefined),
      );
      if (got !== sum) faults.push(`the answers count ${got} changes, and there are ${sum}`);
    }
    return faults;
  }
}

/** The rows that differ from those of every sequence. */
function differences(rows: Rows, sequences: readonly Rows[]): string[] {
  const keys = new Set([rows, ...sequences].flatMap((one) => [...one.keys()]));
  return [...keys].flatMap((key) => {
    const wanted = new Set(sequences.map((one) => one.get(key) ?? "none"));
    const found = rows.get(key) ?? "none";
    return wanted.has(found) ? [] : [`${key} is\n  ${found}\nand could be\n  ${[...wanted].join("\n  ")}`];
  });
}

interface Sequence {
  readonly ended: readonly Ended[];
  readonly content: string;
  readonly rows: () => Promise<Rows>;
}

function uncoded(ended: readonly Ended[]): string[] {
  return ended.flatMap(({ error }) =>
    error === undefined || error === DEAD || isCarillonError(error) ? [] : [`not a coded error: ${error}`],
  );
}

/** Whether a call may have changed some things and not others. */
function isPartial({ error, answer }: Ended): boolean {
  const { refused } = Object(answer) as { refused?: { count?: number } };
  return error !== undefined || (refused?.count ?? 0) > 0;
}

/** Sum of the changes in the answers. */
function countOf(ended: readonly Ended[], isMany: boolean): number {
  return ended.reduce((sum, { answer }) => {
    const { count, changed } = Object(answer) as { count?: unknown; changed?: unknown };
    // One call of several may have changed a part: only counts add up.
    return sum + (typeof count === "number" ? count : isMany ? 0 : Number(changed === true));
  }, 0);
}

/** All sequences of these calls. @param may which may be left out */
function ordersOf(calls: readonly Call[], may: readonly boolean[]): Call[][] {
  const orders: number[][] = [];
  const extend = (order: number[]) => {
    if (calls.every((_, i) => may[i] || order.includes(i))) orders.push(order);
    for (const i of calls.keys()) if (!order.includes(i)) extend([...order, i]);
  };
  extend([]);
  return orders.map((order) => order.map((i) => calls[i] as Call));
}
