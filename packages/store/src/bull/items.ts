import type { ItemState, Json, RunItem } from "@carillon/core";
import type { NamespaceKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import { NOTE_ITEM, PLAN_ITEMS } from "../run/run-scripts.js";
import type { Scripts } from "../script/scripts.js";
import { bullChildren } from "./bull-keys.js";

/** Records read at once. */
const STEP = 500;

/** Start or end of an attempt at an item. */
export interface ItemNote {
  readonly index: number;
  /** A start is `active`. */
  readonly status: ItemState;
  /** Lock token with which the worker took the item's job. */
  readonly token: string;
  /** The attempt that starts. */
  readonly by?: { readonly attempt: number; readonly pid: number; readonly worker: string } | undefined;
  /** Result, output and error; only at the end of an attempt. */
  readonly details?:
    | { readonly [Field in "result" | "output" | "error"]?: RunItem[Field] | undefined }
    | undefined;
  /** Replaces its data. */
  readonly data?: Json | undefined;
}

/** Items of a fan-out: BullMQ's children of a run's job, and their records, which are kept as long as the run's. */
export class ItemRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** Job ids of the items that a run has, done or not. */
  async ids(queue: string, run: string): Promise<Set<string>> {
    const { job } = this.#keys.queue(queue);
    const { left, succeeded, failed } = bullChildren(job(run));
    // Not BullMQ's getDependencies: it takes an answer that was lost for an empty one. What is left comes first: an item that
    // ends meanwhile is then seen twice rather than never.
    const found = await this.#link.ask((client) =>
      Promise.all([client.smembers(left), client.hkeys(succeeded), client.hkeys(failed)]),
    );
    return new Set(found.flat().map((key) => key.slice(job("").length)));
  }

  /** Forgets the completed items of a run, and deletes the records of all. */
  async forgetDone(queue: string, run: string): Promise<void> {
    const { job, items } = this.#keys.queue(queue);
    const { succeeded, failed } = bullChildren(job(run));
    await this.#link.ask((client) => client.unlink(succeeded, failed, items(run)));
  }

  /** Stores items that are about to be added. @returns false if another attempt has taken the run over */
  async plan(
    queue: string,
    run: string,
    by: { readonly fence: number; readonly most: number },
    items: readonly { readonly index: number; readonly item: Json }[],
  ): Promise<boolean> {
    const keys = this.#keys.queue(queue);
    const each = items.map(({ index, item }) => ({ index, data: JSON.stringify(item) }));
    return (
      (await this.#scripts.run(PLAN_ITEMS, { run: keys.run(run), items: keys.items(run) }, by, each)) === 1
    );
  }

  /** Stores the start or the end of an attempt at an item, if the worker still has the item's job. */
  async note(queue: string, run: string, { by, details, data, ...note }: ItemNote): Promise<void> {
    const keys = this.#keys.queue(queue);
    await this.#scripts.run(
      NOTE_ITEM,
      { run: keys.run(run), items: keys.items(run), job: keys.job(`${run}.${note.index}`) },
      {
        ...note,
        attempts: by?.attempt,
        pid: by?.pid,
        worker: by?.worker.replace(/\s/g, "_"),
        details: details && JSON.stringify(details),
        data: data === undefined ? undefined : JSON.stringify(data),
      },
    );
  }

  /** One more than the largest index of a run's items; 0: the run has none. */
  async count(queue: string, run: string): Promise<number> {
    const key = this.#keys.queue(queue).items(run);
    return Number((await this.#link.ask((client) => client.hget(key, "n"))) ?? 0);
  }

  /**
   * Items of a run by index, starting at one.
   * @param wants whether to include an item with this stored status
   * @returns also the index of the next page; undefined: this was the last
   */
  async page(
    queue: string,
    run: string,
    wants: (status: ItemState) => boolean,
    { from, limit }: { readonly from: number; readonly limit: number },
  ): Promise<{ items: RunItem[]; next: number | undefined }> {
    const key = this.#keys.queue(queue).items(run);
    const ask = (fields: string[]) => this.#link.ask((client) => client.hmget(key, ...fields));
    const [n, most] = await ask(["n", "most"]);
    const count = Number(n ?? 0);
    const found: [index: number, record: string][] = [];
    let at = from;
    while (at < count && found.length < limit) {
      const indexes = Array.from({ length: Math.min(STEP, count - at) }, (_, i) => at + i);
      const records = await ask(indexes.map(String));
      for (const index of indexes) {
        if (found.length === limit) break;
        at = index + 1;
        const record = records[index - indexes[0]!];
        if (record && wants(record.slice(0, record.indexOf(" ")) as ItemState)) found.push([index, record]);
      }
    }
    const data = found.length === 0 ? [] : await ask(found.map(([index]) => `d${index}`));
    // An item without data was deleted meanwhile, with its run.
    const items = found.flatMap(([index, record], i) =>
      data[i] ? [decode(index, record, data[i], Number(most))] : [],
    );
    return { items, next: at < count ? at : undefined };
  }
}

/** @param record as note-item.lua writes it */
function decode(index: number, record: string, data: string, maxAttempts: number): RunItem {
  const end = record.indexOf("\n");
  const [status, planned, started, finished, attempts, pid, worker] = record.slice(0, end).split(" ");
  const given = { started, finished, pid };
  const numbers = Object.entries(given).filter(([, text]) => text !== "-");
  return {
    index,
    status: status as ItemState,
    data: JSON.parse(data) as Json,
    planned: Number(planned),
    attempts: Number(attempts),
    maxAttempts,
    ...Object.fromEntries(numbers.map(([name, text]) => [name, Number(text)])),
    ...(worker === "-" ? {} : { worker }),
    ...(JSON.parse(record.slice(end + 1) || "{}") as Pick<RunItem, "result" | "output" | "error">),
  } as RunItem;
}
