import type { Operation } from "../../src/operation.js";
import { operatorOf } from "../../src/operator.js";
import type { World } from "./world.js";

/** The stored things by name, without the fields that differ each time: ids, revisions, authors. */
export type Rows = ReadonlyMap<string, string>;

/** Lists that say nothing about what a call leaves. */
const OTHERS = ["alerts.list", "changes.list", "names.list", "namespaces.list", "nodes.list", "workers.list"];
/** Differ each time, follow from the rows of others, or say how fast and not what. `queues`: in which a set's last apply wrote. */
const MASKED = new Set([
  ...["revision", "generation", "created", "updated", "at", "by", "createdBy", "batch", "applied"],
  ...["tasks", "waiting", "oldestWaitingMs", "outcomes", "queues"],
]);

function masked(value: unknown): unknown {
  if (typeof value === "string")
    return value.replace(/@[0-9a-z]+\.[0-9a-z]+/g, "@run").replace(/^(b-)?[0-9a-f]{12}$|^[0-9a-z]{13}$/, "#");
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([field, one]) => (MASKED.has(field) ? [] : [[field, masked(one)]])),
  );
}

type Verbs = { readonly list: () => Promise<object> };

/** The state once all that is due has been done. */
export async function rowsOf(world: World, known: ReadonlyMap<string, Operation>): Promise<Rows> {
  await world.runOut();
  const { client, store } = world.program();
  const ops = operatorOf(client) as unknown as Record<string, Verbs>;
  const rows = new Map<string, string[]>();
  const add = (key: string, value: unknown) => {
    const values = rows.get(key) ?? [];
    values.push(JSON.stringify(masked(value)));
    rows.set(key, values.sort());
  };
  const lists = [...known].filter(
    ([name, { input }]) => name.endsWith(".list") && !OTHERS.includes(name) && input.safeParse({}).success,
  );
  const tasks: { queue: string; owner: string; id: string }[] = [];
  await Promise.all(
    lists.map(async ([name]) => {
      const [noun = "", verb = ""] = name.split(".");
      const answer = await (ops[noun] as Verbs)[verb as "list"]();
      const entries = Object.values(answer).find(Array.isArray) ?? [];
      for (const entry of entries) {
        const { task, queue, owner, id, name: named } = entry;
        const of = noun === "tasks" ? { queue, owner, id } : task;
        if (noun === "tasks") tasks.push(of);
        const key = of ? `${of.queue}/${of.owner}/${of.id}` : (named ?? entry.queue ?? "");
        // The pace follows from how much was left.
        add(
          `${noun} ${typeof entry === "string" ? entry : key}`,
          noun === "backfills" ? { ...entry, every: 0 } : entry,
        );
      }
    }),
  );
  await Promise.all(
    tasks.map(async (name) => {
      const [runs, ledger, stored] = await Promise.all([
        store.runs.list(name, 1_000),
        store.runs.ledger(name),
        store.tasks.get(name),
      ]);
      const key = `${name.queue}/${name.owner}/${name.id}`;
      for (const { nominal, trigger, outcome, state, cancel } of runs)
        add(
          `runs of ${key}`,
          [
            new Date(nominal).toISOString().slice(11, 19),
            trigger,
            outcome ?? state,
            ...(cancel ? ["cancel"] : []),
          ].join(" "),
        );
      for (const { reason, from, to } of ledger)
        add(
          `skips of ${key}`,
          [reason, ...[from, to].map((at) => new Date(at).toISOString().slice(11, 19))].join(" "),
        );
      add(`mark of ${key}`, stored?.moving);
    }),
  );
  return new Map([...rows].map(([key, values]) => [key, values.join("; ")]));
}
