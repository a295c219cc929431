import { type Freeze, frozenAt, nextFreeze } from "@carillon/core/internal";
import type { Task } from "@carillon/sdk";
import { z } from "zod";
import { mayRead } from "../freezes/freeze.js";
import type { Call } from "../operation.js";
import { pause, time } from "../shapes.js";
import type { BoardReads } from "./board-reads.js";

const text = z.string();
export const band = z.object({
  kind: z.enum(["freeze", "queue-paused", "task-paused"]),
  from: time,
  to: time.optional().describe("Missing: until somebody ends it."),
  ...z.object({ queue: text, owner: text, tag: text, id: text, by: text, note: text }).partial().shape,
});
type Band = z.output<typeof band>;
export const boardEvent = z.object({
  kind: z.enum(["deploy", "node", "worker"]),
  at: time,
  name: text.describe("The set of tasks that was applied, or the process that started."),
  by: text.optional(),
});

/** Cells of a board, and windows of a recurring freeze. */
export const MOST_CELLS = 300;

/** The times of a range in which freezes hold, or held until they ended. */
export function freezesOf(
  call: Call,
  freezes: readonly (Freeze & { readonly ended?: number })[],
  range: { readonly from: number; readonly to: number },
): Band[] {
  return freezes
    .filter((freeze) => mayRead(call, freeze))
    .flatMap(({ ended = Number.POSITIVE_INFINITY, ...freeze }) =>
      windowsOf(freeze, { ...range, to: Math.min(range.to, ended) }, call.owner).map((band) =>
        (band.to ?? Number.POSITIVE_INFINITY) <= ended ? band : { ...band, to: ended },
      ),
    );
}

/** The times in a range in which a freeze holds. */
function windowsOf(
  freeze: Freeze,
  { from, to }: { from: number; to: number },
  bound: string | undefined,
): Band[] {
  const { queue, owner, tag, tasks, by, note } = freeze;
  const held = tasks?.filter((task) => bound === undefined || task.owner === bound) ?? [
    { queue, owner, tag },
  ];
  const bands: Band[] = [];
  let at: number | undefined = frozenAt([freeze], from) ? from : nextFreeze([freeze], from);
  while (at !== undefined && at < to && bands.length < MOST_CELLS) {
    const until = frozenAt([freeze], at)?.until;
    for (const scope of held) bands.push({ kind: "freeze", from: at, to: until, ...scope, by, note });
    at = until === undefined ? undefined : nextFreeze([freeze], until - 1);
  }
  return bands;
}

/** Pauses that somebody ended: entries of the change log name them, those of many tasks some of them. */
export function endedPauses(log: BoardReads["log"]): Band[] {
  return log.flatMap(({ kind, at: to, scope: { queue, owner, id }, before, sample = [] }) => {
    const isQueue = kind === "queue.resume";
    if (!isQueue && kind !== "resume") return [];
    const ended = [...sample, { queue, owner, id, paused: before?.paused }];
    return ended.flatMap(({ paused, ...scope }) => {
      const { success, data } = pause.safeParse(paused);
      if (!success) return [];
      const { at: from, ...about } = data;
      return [
        {
          kind: isQueue ? ("queue-paused" as const) : ("task-paused" as const),
          from,
          to,
          ...scope,
          ...about,
        },
      ];
    });
  });
}

/** Pauses of queues that recorded their time. */
export function pausesOf(states: BoardReads["states"]): Band[] {
  return states.flatMap(({ queue, paused: { at, by, note } = {} }) =>
    at === undefined ? [] : [{ kind: "queue-paused" as const, from: at, queue, by, note }],
  );
}

export function taskPauses(tasks: readonly Task[]): Band[] {
  return tasks.flatMap(({ state, paused, queue, owner, id }) => {
    if (state !== "paused" || paused === undefined) return [];
    const { at, by, note } = paused;
    return [{ kind: "task-paused" as const, from: at, queue, owner, id, by, note }];
  });
}

/** Deploys: sets of tasks that were applied, and processes that started. */
export function eventsOf(
  { log, nodes, workers }: BoardReads,
  { from, to }: { readonly from: number; readonly to: number },
): z.output<typeof boardEvent>[] {
  const applied = log.flatMap(({ kind, at, scope, by }) =>
    kind === "apply" ? [{ kind: "deploy" as const, at, name: scope.set ?? "", by }] : [],
  );
  const started = (
    kind: "node" | "worker",
    all: readonly { readonly id: string; readonly started: number }[],
  ) => all.map(({ id, started: at }) => ({ kind, at, name: id }));
  return [...applied, ...started("node", nodes), ...started("worker", workers)]
    .filter(({ at }) => at >= from && at <= to)
    .sort((a, b) => b.at - a.at)
    .slice(0, 50);
}
