import { z } from "zod";
import { operation } from "../operation.js";
import { namesOf } from "../queues/queue.js";
import { given, oneOf } from "../shapes.js";

/** Most names of an answer. */
const MOST = 100;
/** Tasks whose types are read. */
const SAMPLE = 1_000;

/** Suggestions for a field in which a person types a name. Costs one short script a queue, however many tasks there are. */
export const listNames = operation({
  http: "GET /names",
  role: "viewer",
  reach: "owner",
  summary: `Suggests queues, owners, tags or task types that exist: the first ${MOST} that begin with a text. Types are those of workers, those that are allowed, and those of a sample of tasks.`,
  input: z.strictObject({
    of: oneOf(["queue", "owner", "tag", "type"]),
    starts: given.optional().describe("Beginning of the names. Default: any."),
  }),
  output: z.object({
    names: z.array(z.string()),
    more: z.boolean().describe("Whether there are more names with this beginning."),
  }),
  async run({ store, owner }, { of, starts = "" }) {
    const { registry, tasks } = store;
    const queues = await namesOf({ store, owner });
    const inEach = (read: (queue: string) => Promise<readonly string[]>) => Promise.all(queues.map(read));
    const typesOf = (queue: string) => tasks.types(queue, owner, Math.ceil(SAMPLE / queues.length));
    const all = {
      queue: () => queues,
      owner: () => owner ?? inEach((queue) => tasks.suggest(queue, "owner", starts, undefined, MOST + 1)),
      tag: () => inEach((queue) => tasks.suggest(queue, "tag", starts, owner, MOST + 1)),
      type: async () => [
        ...(await inEach(typesOf)),
        // A bound caller sees nothing of the whole namespace.
        ...(owner === undefined
          ? [await registry.types(), ...(await registry.workers()).map(({ types }) => types)]
          : []),
      ],
    };
    const found = new Set([await all[of]()].flat(2).filter((name) => name.startsWith(starts)));
    const names = [...found].sort();
    return { names: names.slice(0, MOST), more: names.length > MOST };
  },
});
