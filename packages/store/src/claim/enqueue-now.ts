import type { ParsedTask } from "@carillon/core";
import { conflict, localName, runId, shardOf } from "@carillon/core/internal";
import { bullKeys } from "../bull/bull-keys.js";
import type { QueueKeys } from "../keys.js";
import { FACTS } from "../script/facts.js";
import type { Scripts } from "../script/scripts.js";
import { definitionFields, storedFields } from "../task/codec.js";
import { clearDeletedRuns } from "../task/deleted-runs.js";
import { addFailed, nameTaken } from "../task/errors.js";
import { ENQUEUE_NEW } from "./claim-scripts.js";
import { dataParts, type JobTexts } from "./job-texts.js";
import type { Requester } from "./pack.js";

/** Attempts while other tasks of the shard are deleted. */
const TRIES = 20;

/** Implements `ClaimRepository.enqueueNow`. */
export async function enqueueNow(
  {
    scripts,
    keys,
    jobs,
    seen,
  }: { scripts: Scripts; keys: QueueKeys; jobs: JobTexts; seen: Map<string, string> },
  parsed: ParsedTask,
  by: Requester,
): Promise<{ run: string; enqueued: number } | undefined> {
  const { definition, payloadJson } = parsed;
  const local = localName(definition);
  const shard = shardOf(local);
  const now = "at" in definition.schedule ? new Date(definition.schedule.at).getTime() : 0;
  const run = runId(definition.id, now, by.token);
  const named = { ...(by.name && { by: by.name }), ...(by.trace && { trace: by.trace }) };
  const enqueue = { key: by.key, nominal: now, due: now, trigger: "manual", ...named } as const;
  const template = await jobs.template(keys.bull, definition).json();
  const mark = `${FACTS.goneOpen}${local}`;
  const send = () =>
    scripts.run(
      ENQUEUE_NEW,
      {
        ...keys,
        task: keys.task(local),
        open: keys.open(local),
        record: keys.run(run),
        job: keys.job(run),
        gone: keys.gone(mark),
        bull: bullKeys(keys.bull),
      },
      {
        name: local,
        shard,
        seen: seen.get(keys.due(shard)),
        run,
        node: by.node,
        template: `[${template}]`,
        details: jobs.texts(definition, enqueue).details,
        owner: definition.owner,
        id: definition.id,
        ...dataParts(definition, enqueue, payloadJson),
        by: by.name,
        trace: by.trace,
        fields: [...storedFields(definitionFields(parsed, true))].flat(),
      },
    );
  let [word, at, newest] = await send();
  for (let tries = 1; (word === "LEFT" || word === "STALE") && tries < TRIES; tries++) {
    if (word === "LEFT") await clearDeletedRuns(scripts, keys, mark);
    else seen.set(keys.due(shard), newest ?? "");
    [word, at, newest] = await send();
  }
  if (word === "LIMITED") return undefined;
  if (word === "TAKEN") throw nameTaken(local);
  if (word === "LEFT" || word === "STALE")
    throw conflict(`${local} kept being deleted meanwhile.`, "Try again.");
  if (word.startsWith("ERROR")) throw addFailed(word);
  return { run, enqueued: at };
}
