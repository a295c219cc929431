import { bullTakeLua } from "../bull/bull-turn.js";
import { type Bull, bull } from "../bull/load.js";
import { type Library, library, madeLibrary } from "./script.js";

const borrowed = (name: string, made: (bull: Bull) => string, uses?: readonly Library[]): Library => ({
  ...madeLibrary(name, () => made(bull()), uses),
  borrowed: true,
});

export const KEYS = library("keys");
export const NEXT = library("next", [KEYS]);
export const ALERT = library("alert", [KEYS]);
export const BULL = library("bull", [KEYS]);
export const TASK = library("task", [NEXT]);
export const OPEN = library("open");
/** Safety parts that a test can take out. */
export const CHECKS = madeLibrary("checks", ({ sabotage }) =>
  [
    `local FENCED = ${!sabotage.includes("fence")}`,
    `local TIMELY = ${!sabotage.includes("early")}`,
    `local THAWED = ${!sabotage.includes("freeze")}`,
    `local GUARDED = ${!sabotage.includes("overlap-guard")}`,
    `local LIMITING = ${!sabotage.includes("limit")}`,
    `local LEAVING = ${!sabotage.includes("places")}`,
    `local ONCE = ${!sabotage.includes("once")}`,
    `local WAKING = ${!sabotage.includes("wake")}`,
  ].join("\n"),
);
export const PLACES = library("places", [CHECKS, TASK]);
export const MARKS = library("marks", [CHECKS]);
export const ONCE = library("once", [MARKS]);
export const LEDGER = library("ledger", [KEYS]);
export const REVISIONS = library("revisions", [KEYS]);
export const TRIED = library("tried");
const BULL_REMOVE = borrowed("bull-remove", (bull) => bull.bullRemoveLua(), [BULL]);
export const BULL_PROMOTE = borrowed("bull-promote", (bull) => bull.bullPromoteLua());
export const CLEAR = library("clear", [BULL_REMOVE]);
export const STATS = library("stats");
const RUN = library("run", [TASK, OPEN, PLACES, ALERT, BULL, TRIED, STATS]);
export const REOPEN = library("reopen", [RUN]);
export const SWEEP = library("sweep", [RUN, TRIED, library("bulk", [BULL])]);
export const START = library("start", [RUN]);
export const CRASH = library("crash");
export const ITEM = library("item");
export const EACH = library("each", [RUN, TRIED]);
export const BULL_END = library("bull-end", [RUN]);
export const BULL_TAKE = borrowed("bull-take", bullTakeLua, [RUN]);
export const QUOTA = library("quota", [KEYS, BULL]);
export const LATE = library("late");
export const RECKON = library("reckon", [OPEN, BULL]);
const BULL_ADD = borrowed("bull-add", (bull) => bull.bullAddLua());
export const ENQUEUE = library("enqueue", [KEYS, BULL_ADD]);
export const CANCEL = library("cancel", [KEYS]);
export const BULL_PAUSE = borrowed("bull-pause", (bull) => bull.bullPauseLua());
