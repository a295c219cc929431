import type { ItemState, Json, RunItem } from "@carillon/core";
import { conflict, itemId } from "@carillon/core/internal";
import type { JobsOptions } from "bullmq";
import { templateText } from "../claim/job-texts.js";
import { Repository } from "../repository.js";
import { ADD_ITEMS, NOTE_ITEM } from "../run/run-scripts.js";
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
  /** Fields of each job's data besides `child`, `index` and `item`. */
  readonly data: object;
  readonly options: JobsOptions & { readonly attempts: number };
}

/** Start or end of an attempt at an item. */
export interface ItemNote {
  readonly index: number;
  /** A start is `active`. */
  readonly status: ItemState;
  /** Lock token with which the worker took the item's job. */
  readonly token: string;
  /** Attempts whose worker died. */
  readonly crashes: number;
  /** The attempt that starts. */
  readonly by?: { readonly attempt: number; readonly pid: number; readonly worker: string } | undefined;
  /** Result and error; only at the end of an attempt. */
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
    { queue, run, round, data, options, ...by }: NewItems,
    items: readonly { readonly index: number; readonly item: Json }[],
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
        { ...by, round, most: options.attempts, template: `[${templateText(template)}]`, common },
        chunk.map(({ index, json }) => ({
          job: keys.job(itemId(run, index)),
          id: itemId(run, index),
          index,
          data: json,
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

  /** Stores the start or the end of an attempt at an item, if the worker still has the item's job. */
  async note(queue: string, run: string, { by, details, data, ...note }: ItemNote): Promise<void> {
    const keys = this.keys.queue(queue);
    await this.scripts.run(
      NOTE_ITEM,
      { run: keys.run(run), items: keys.items(run), job: keys.job(itemId(run, note.index)) },
      {
        ...note,
        attempts: by?.attempt,
        pid: by?.pid,
        worker: by?.worker,
        details: details && JSON.stringify(details),
        data: data === undefined ? undefined : JSON.stringify(data),
      },
    );
  }

  /** One more than the largest index of a run's items; 0: the run has none. */
  async count(queue: string, run: string): Promise<number> {
    const key = this.keys.queue(queue).items(run);
    return Number((await this.link.ask((client) => client.hget(key, "n"))) ?? 0);
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
    const key = this.keys.queue(queue).items(run);
    const ask = (fields: string[]) => this.link.ask((client) => client.hmget(key, ...fields));
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
    const more = found.length === 0 ? [] : await ask(found.flatMap(([index]) => [`d${index}`, `o${index}`]));
    // An item without data was deleted meanwhile, with its run.
    const items = found.flatMap(([index, record], i) => {
      const [data, output] = more.slice(2 * i);
      return data ? [decode(index, record, data, output, Number(most))] : [];
    });
    return { items, next: at < count ? at : undefined };
  }
}

/** At least one, because the first call also begins a round. */
function* chunks(items: readonly { readonly index: number; readonly item: Json }[]) {
  let chunk: { readonly index: number; readonly json: string }[] = [];
  let bytes = 0;
  for (const { index, item } of items) {
    const json = JSON.stringify(item);
    const more = Buffer.byteLength(json);
    if (chunk.length === MOST_ADDED || (chunk.length > 0 && bytes + more > MOST_BYTES)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push({ index, json });
    bytes += more;
  }
  yield chunk;
}

/** @param record as note-item.lua writes it */
function decode(
  index: number,
  record: string,
  data: string,
  output: string | null | undefined,
  maxAttempts: number,
): RunItem {
  const end = record.indexOf("\n");
  const [status, planned, started, finished, attempts, pid, worker, crashes] = record
    .slice(0, end)
    .split(" ");
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
    ...(Number(crashes) > 0 ? { crashes: Number(crashes) } : {}),
    ...(output ? { output: (JSON.parse(output) as { text: string }).text } : {}),
    ...(JSON.parse(record.slice(end + 1) || "{}") as Pick<RunItem, "result" | "error">),
  } as RunItem;
}
