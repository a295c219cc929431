import { CarillonError, type JobData, type Json, type TaskName } from "@carillon/core";
import { roundedInstant } from "@carillon/core/internal";
import type { SettleWord } from "@carillon/store";
import type { AttemptContext, Context } from "../context.js";
import { printingTo } from "./console-capture.js";
import { Ending } from "./ending.js";
import type { Taken } from "./job-end.js";
import { LARGEST_CHECKPOINT, lineOf, plainJson } from "./json.js";
import type { RunEvent } from "./options.js";
import type { Output } from "./output.js";
import type { Parts } from "./parts.js";
import type { TimeBox } from "./time-box.js";

/** Limits of a job's log, for Bull Board: number of lines (the newest), and characters per line. */
const LOG_LINES = 1_000;
const LONGEST_LINE = 16 * 1024;

const NO_LONGER: Record<Exclude<SettleWord, "OK">, string> = {
  FENCED: "another attempt has taken this run over.",
  GONE: "the task was deleted.",
  FINAL: "this run is over.",
};

/** The `log` of an attempt at a run or at an item. */
export function logOf(
  { logger }: Pick<Parts, "logger">,
  { job }: Taken,
  about: RunEvent,
  output?: Output,
): AttemptContext["log"] {
  return (message, details) => {
    job.opts.keepLogs ??= LOG_LINES;
    // Not captured: a logger that prints would have the line kept twice.
    printingTo(undefined, () => logger.info({ ...about, ...details }, message));
    const line = lineOf(message, details);
    output?.write("log", line);
    job.log(line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line).catch(() => {});
  };
}

const partial: Context["partial"] = (result) => new Ending("partial", result);
const nothingToDo: Context["nothingToDo"] = (result) => new Ending("nothing-to-do", result);

export interface RunTools {
  readonly parts: Parts;
  readonly taken: Taken<JobData>;
  readonly name: TaskName;
  readonly about: RunEvent;
  readonly box: TimeBox;
  readonly output: Output;
  readonly runNextAt: (time: number) => void;
}

/** A run's context. Its functions do not use `this`, because handlers destructure it. */
export function runContext(
  { parts, taken, name, about, box, output, runNextAt }: RunTools,
  { fence, attempt, checkpoint }: { fence: number; attempt: number; checkpoint: Json | undefined },
): Context {
  const { occurrence } = taken.job.data;
  return {
    // Created on demand: few handlers read it, and it is expensive.
    get signal() {
      return box.signal;
    },
    timeLeft: () => box.timeLeft(),
    log: logOf(parts, taken, about, output),
    type: taken.job.name,
    occurrence,
    idempotencyKey: occurrence.key,
    fence,
    attempt,
    checkpoint,
    saveCheckpoint: async (value) => {
      plainJson(value, "checkpoint", LARGEST_CHECKPOINT);
      const word = await parts.store.runs.checkpoint(name, occurrence.run, fence, value);
      if (word !== "OK") throw new CarillonError("CONFLICT", `not saved: ${NO_LONGER[word]}`);
    },
    runNextAt: (time) => runNextAt(roundedInstant(time, "runNextAt")),
    partial,
    nothingToDo,
  };
}
