import type { ItemState, Json, RunItem, TaskName } from "@carillon/core";
import { conflict, itemId, localName } from "@carillon/core/internal";
import type { JobsOptions } from "bullmq";
import { templateText } from "../claim/job-texts.js";
import { Repository } from "../repository.js";
import { ADD_ITEMS, END_ITEM, START_ITEM, TAKE_LEFT } from "../run/run-scripts.js";
import { addFailed } from "../task/errors.js";
import { bullChildren, bullKeys } from "./bull-keys.js";
import { loadBull } from "./load.js";

/** Records read at once. */
const STEP = 500;
/** Most items that one script adds, and of more than one the bytes of their data: it holds Redis for some ms. */
const [MOST_ADDED, MOST_BYTES] = [250, 1024 * 1024];

/** Items of a run that are to be added, apart from their data. */
export interface NewItems {
  readonly queue: string;
  readonly run: string;
  /** The name of their jobs: the task type. */
  readonly type: string;
  /** Fence of the attempt, and that of the attempt which began this round of items. */
  readonly fence: number;
  readonly round: number;
  /** Lock that the attempt holds on the run's job. */
  readonly token: string;
  /** End of the run's time limit, UTC ms of Redis time; undefined: none. */
  readonly ends?: number | undefined;
  /** Fields of each job's data besides `child`, `index` and `item`. */
  readonly data: object;
  readonly options: JobsOptions & { readonly attempts: number };
}

/** An item that is to be added. One that an earlier run left keeps its deaths, its wait after a crash, and its idempotency key. */
export interface NewItem {
  readonly index: number;
  readonly item: Json;
  readonly crashes?: number | undefined;
  readonly notBefore?: number | undefined;
  readonly key?: string | undefined;
}

/** An item's job, as a worker took it. */
export interface TakenItem {
  readonly name: TaskName;
  readonly run: string;
  readonly index: number;
  /** Lock token with which the worker took the job. */
  readonly token: string;
}

export type ItemStart =
  | {
      readonly word: "OK";
      /** From 1. */
      readonly attempt: number;
      /** Milliseconds left of the run's time limit; undefined: it has none. */
      readonly left: number | undefined;
      /** The idempotency key from the earlier run that left it. */
      readonly key: string | undefined;
    }
  /** The worker no longer has the job. */
  | { readonly word: "LOST" }
  /** There is nothing to do: its run is over or cancelled, or its task is deleted. */
  | { readonly word: "OVER" }
  /** Its run has reached its time limit. */
  | { readonly word: "LIMIT" }
  /** It is given up after this number of deaths of its workers. */
  | { readonly word: "CRASHED"; readonly deaths: number }
  /** The wait after a crash, or the pause of its task, is not over before `until`; now it is `now`. Both by the clock of Redis. */
  | { readonly word: "WAIT"; readonly until: number; readonly now: number };

/** End of an attempt at an item, or of an item that does not start. */
export interface ItemEnd {
  /** `waiting`: another attempt follows. */
  readonly status: ItemState;
  /** The run's time limit left it for the next run. */
  readonly left?: boolean | undefined;
  readonly details?: { readonly [Field in "result" | "error"]?: RunItem[Field] | undefined } | undefined;
  /** Replaces its data. */
  readonly data?: Json | undefined;
}

/** Items of a fan-out: BullMQ's children of a run's job, and their records, which are kept as long as the run's. */
export class ItemRepository extends Repository {
  /**
   * Adds items that the run does not have yet, in one step with their records. A repetition adds nothing twice, even if items have ended
   * meanwhile.
   *
   * @returns how many items the run has; undefined: another attempt has taken the run over, or it is gone
   * @throws `CONFLICT` if a job that is not this run's has the id of an item
   */
  async add(
    { queue, run, round, data, options, ends, ...by }: NewItems,
    items: readonly NewItem[],
  ): Promise<number | undefined> {
    const keys = this.keys.queue(queue);
    const parent = keys.job(run);
    const { JobPacker } = await loadBull();
    const template = new JobPacker(keys.bull).template(by.type, {
      ...options,
      parent: { id: run, queue: parent.slice(0, -run.length - 1) },
      // The run's job stores the result of each item; a failed item must not block it.
      ignoreDependencyOnFailure: true,
      removeOnComplete: true,
      removeOnFail: true,
    });
    const common = `,${JSON.stringify(data).slice(1, -1)}`;
    let total: number | undefined = 0;
    for (const chunk of chunks(items)) {
      const [word, about] = await this.scripts.run(
        ADD_ITEMS,
        {
          ...keys,
          run: keys.run(run),
          items: keys.items(run),
          parent,
          ...bullChildren(parent),
          bull: bullKeys(keys.bull),
        },
        { ...by, round, ends, most: options.attempts, template: `[${templateText(template)}]`, common },
        chunk.map(({ index, json, crashes = 0, notBefore = "-", key = "-" }) => ({
          job: keys.job(itemId(run, index)),
          id: itemId(run, index),
          index,
          data: json,
          since: `${crashes} ${notBefore} ${key}`,
        })),
      );
      if (word === "LOST") return undefined;
      if (word === "TAKEN")
        throw conflict(
          `job ${about} of queue ${queue} is not an item of this run, but has its id.`,
          "Remove that job. Give jobs of your own no ids with '@'.",
        );
      if (word === "ERROR") throw addFailed(about);
      total = about;
    }
    return total;
  }

  #keysOf({ name, run, index }: TakenItem) {
    const keys = this.keys.queue(name.queue);
    const local = localName(name);
    return {
      run: keys.run(run),
      items: keys.items(run),
      task: keys.task(local),
      stats: keys.stats(local),
      open: keys.open(local),
      left: bullChildren(keys.job(run)).left,
      job: keys.job(itemId(run, index)),
    };
  }

  /**
   * Starts an attempt at an item, unless it must not start, or must wait. If the worker of the attempt before died, this counts as a crash of
   * its run and task.
   */
  async start(
    item: TakenItem,
    by: { readonly made: number; readonly pid: number; readonly worker: string },
  ): Promise<ItemStart> {
    const { index, token } = item;
    const reply = await this.scripts.run(START_ITEM, this.#keysOf(item), { index, token, ...by });
    switch (reply[0]) {
      case "OK": {
        const [word, attempt, left, key] = reply;
        return { word, attempt, left: left === "" ? undefined : left, key: key === "-" ? undefined : key };
      }
      case "CRASHED":
        return { word: reply[0], deaths: reply[1] };
      case "WAIT":
        return { word: reply[0], until: reply[1], now: reply[2] };
      default:
        return { word: reply[0] };
    }
  }

  /** Stores the end of an attempt at an item, if the worker still has the item's job. */
  async end(item: TakenItem, { status, left, details, data }: ItemEnd): Promise<void> {
    const { run: id, index, token } = item;
    const text = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));
    const args = { id, index, token, status, left, details: text(details), data: text(data) };
    await this.scripts.run(END_ITEM, this.#keysOf(item), args);
  }

  /**
   * Claims the items that the time limit of an earlier run left, for a run of the same task. Returns that earlier run; undefined: it left none,
   * or another run has them.
   * @param of the earlier run; undefined: the newest that left any
   */
  async takeLeft(name: TaskName, run: string, of: string | undefined): Promise<string | undefined> {
    const keys = this.keys.queue(name.queue);
    const given = { run: keys.run(run), stats: keys.stats(localName(name)) };
    return (await this.scripts.run(TAKE_LEFT, given, { id: run, of })) || undefined;
  }

  /**
   * Number of a run's items that its time limit left, how many of them were under way and ended with an error, and the run that does
   * them next.
   */
  async left(queue: string, run: string): Promise<{ left: number; torn: number; by: string | undefined }> {
    const key = this.keys.queue(queue).items(run);
    const [left, torn, by] = await this.link.ask((client) => client.hmget(key, "left", "torn", "by"));
    return { left: Number(left ?? 0), torn: Number(torn ?? 0), by: by ?? undefined };
  }

  /** One more than the largest index of a run's items; 0: the run has none. */
  async count(queue: string, run: string): Promise<number> {
    const key = this.keys.queue(queue).items(run);
    return Number((await this.link.ask((client) => client.hget(key, "n"))) ?? 0);
  }

  /**
   * Items of a run by index, starting at one.
   * @param wants whether to include an item with this stored status
   * @param matches whether to include an item with this data, as JSON. Default: all
   * @param most items that are looked at. Default: all
   * @returns also the index of the next page, undefined if this was the last, and how many items were looked at
   */
  async page(
    queue: string,
    run: string,
    wants: (status: ItemState) => boolean,
    {
      from,
      limit,
      matches,
      most: looks = Number.POSITIVE_INFINITY,
    }: {
      readonly from: number;
      readonly limit: number;
      readonly matches?: (data: string) => boolean;
      readonly most?: number;
    },
  ): Promise<{ items: RunItem[]; next: number | undefined; seen: number }> {
    const key = this.keys.queue(queue).items(run);
    const ask = (fields: string[]) => this.link.ask((client) => client.hmget(key, ...fields));
    const [n, most] = await ask(["n", "most"]);
    const count = Number(n ?? 0);
    const end = Math.min(count, from + looks);
    const found: [index: number, record: string][] = [];
    let at = from;
    while (at < end && found.length < limit) {
      const indexes = Array.from({ length: Math.min(STEP, end - at) }, (_, i) => at + i);
      const [records, data] = await Promise.all([
        ask(indexes.map(String)),
        matches && ask(indexes.map((index) => `d${index}`)),
      ]);
      for (const [i, index] of indexes.entries()) {
        if (found.length === limit) break;
        at = index + 1;
        const record = records[i];
        const isMeant = !matches || matches(data?.[i] ?? "");
        if (isMeant && record && wants(record.slice(0, record.indexOf(" ")) as ItemState))
          found.push([index, record]);
      }
    }
    const more = found.length === 0 ? [] : await ask(found.flatMap(([index]) => [`d${index}`, `o${index}`]));
    // An item without data was deleted meanwhile, with its run.
    const items = found.flatMap(([index, record], i) => {
      const [data, output] = more.slice(2 * i);
      return data ? decode(index, record, data, output, Number(most)) : [];
    });
    return { items, next: at < count ? at : undefined, seen: at - from };
  }
}

/** At least one, because the first call also begins a round. */
function* chunks(items: readonly NewItem[]) {
  let chunk: (Omit<NewItem, "item"> & { readonly json: string })[] = [];
  let bytes = 0;
  for (const { item, ...rest } of items) {
    const json = JSON.stringify(item);
    const more = Buffer.byteLength(json);
    if (chunk.length === MOST_ADDED || (chunk.length > 0 && bytes + more > MOST_BYTES)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push({ ...rest, json });
    bytes += more;
  }
  yield chunk;
}

/** Empty if it is corrupt. @param record as lib/item.lua writes it */
function decode(
  index: number,
  record: string,
  data: string,
  output: string | null | undefined,
  maxAttempts: number,
): RunItem[] {
  const end = record.indexOf("\n");
  const [status, planned, started, finished, attempts, pid, worker, crashes, mark, key] = record
    .slice(0, end)
    .split(" ");
  const notBefore = status === "active" ? "-" : mark;
  const given = { started, finished, pid, notBefore };
  const numbers = Object.entries(given).filter(([, text = "-"]) => text !== "-");
  const parsed = parseAll([data, output || "{}", record.slice(end + 1) || "{}"]);
  if (!parsed) return [];
  const item = {
    index,
    status: status as ItemState,
    data: parsed[0] as Json,
    planned: Number(planned),
    attempts: Number(attempts),
    maxAttempts,
    ...Object.fromEntries(numbers.map(([name, text]) => [name, Number(text)])),
    ...(worker === "-" ? {} : { worker }),
    ...(Number(crashes) > 0 ? { crashes: Number(crashes) } : {}),
    ...(key === undefined || key === "-" ? {} : { key }),
    ...(output ? { output: (parsed[1] as { text: string }).text } : {}),
    ...(parsed[2] as Pick<RunItem, "result" | "error">),
  } as RunItem;
  return [item];
}

/** Undefined if one of the texts is not JSON. */
function parseAll(texts: readonly string[]): unknown[] | undefined {
  try {
    return texts.map((text) => JSON.parse(text));
  } catch {
    return undefined;
  }
}
