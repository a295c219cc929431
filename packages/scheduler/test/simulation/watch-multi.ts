import type { ClaimResult, ClaimStatus, PackedItem } from "@carillon/store";
import { internalsOf, type StoreInternals } from "@carillon/store/internal";
import type { Gear } from "./equipment.js";

type Commit = Gear["store"]["claims"]["commit"];
type Run = StoreInternals["link"]["run"];

/**
 * A node that claims with WATCH and MULTI instead of one script that checks everything itself. It also repeats three
 * habits of Redis clients: a reconnected connection has silently lost its WATCH; a MULTI whose answer was lost is sent
 * again; an EVALSHA without its script fails, and the other commands of the MULTI are executed.
 * For a store whose scripts check neither the generation nor concurrent runs: WATCH does that here. The returned
 * function restores the store.
 * @param by `text`: EVAL, which never lacks its script
 */
export const watchMulti = (by: "sha" | "text") => (gear: Gear, point: (name: string) => Promise<void>) => {
  const { store, connection: client } = gear;
  const { claims } = store;
  const { link, keys } = internalsOf(store);
  const original = { commit: claims.commit, run: link.run };
  const commit: Commit = claims.commit.bind(claims);
  const run: Run = link.run.bind(link);
  let items: readonly PackedItem[] = [];
  let of = "";
  let loaded: Promise<unknown> | undefined;
  const cut = () => client.unwatch();
  // A connection has one WATCH, so claims go one at a time.
  let turn: Promise<unknown> = Promise.resolve();

  const claim: Commit = async (queue, all, by) => {
    of = queue;
    const names = all.map(({ entry: { local } }) => ({
      task: keys.queue(queue).task(local),
      open: keys.queue(queue).open(local),
    }));
    await client.watch(...names.flatMap(({ task, open }) => [task, open]));
    await point("after watch").catch(cut);
    const unchanged = await Promise.all(
      all.map(async ({ entry: { task, running } }, i) => {
        const { task: name, open } = names[i] as (typeof names)[number];
        const generation = await client.hget(name, "gen");
        const alone = (await client.hget(name, "open")) === running?.run;
        const waits = !running?.open || alone || (await client.zscore(open, running.run)) !== null;
        return generation === task.generation && waits;
      }),
    );
    items = all.filter((_, i) => unchanged[i]);
    if (items.length === 0)
      return { now: Date.now(), took: 0, heads: new Map(), results: all.map((item) => ({ item, ...STALE })) };
    const { results, ...rest } = await commit(queue, items, by);
    const stale = all.filter((item) => !items.includes(item)).map((item) => ({ item, ...STALE }));
    return { ...rest, results: [...results, ...stale] };
  };

  const transaction: Run = async (script, names, args) => {
    const send = () => {
      const multi = client.multi();
      for (const item of items) {
        const name = keys.queue(of).task(item.entry.local);
        const fields = movedTo(item);
        if (fields.length > 0) multi.hset(name, ...fields);
      }
      const all = [...names, ...args];
      return by === "sha"
        ? multi.evalsha(script.sha, names.length, ...all).exec()
        : multi.eval(script.lua, names.length, ...all).exec();
    };
    // Loads the script, as a client does when it connects.
    loaded ??= client.script("LOAD", script.lua);
    await loaded;
    await point("before exec").catch(cut);
    let replies = await send();
    await point("after exec").catch(async () => {
      replies = await send();
    });
    if (replies === null) return [Date.now(), 0, "-", ...items.map((): ClaimStatus => "STALE")];
    const [error, answer] = replies.at(-1) as [Error | null, unknown];
    if (error) {
      // Loaded for the next claim.
      await client.script("LOAD", script.lua);
      throw new Error("Connection is closed.");
    }
    return answer;
  };

  claims.commit = (...args) => {
    const mine = turn.then(() => claim(...args));
    turn = mine.catch(() => {});
    return mine;
  };
  link.run = (script, ...rest) =>
    script.name === "commit" ? transaction(script, ...rest) : run(script, ...rest);
  return () => {
    claims.commit = original.commit;
    link.run = original.run;
  };
};

const STALE: Pick<ClaimResult, "status" | "run"> = { status: "STALE", run: undefined };

/** The fields of the task that the transaction writes besides the script. */
function movedTo({ decision: { cursor, next } }: PackedItem): (string | number)[] {
  if (cursor === undefined || next === undefined || next === "kept" || !("nominal" in next)) return [];
  return ["cursor", cursor, "nominal", next.nominal, "due", next.due];
}
