import { bullmqModule, toBullmq } from "./bullmq.js";
import { crontabText, toCrontab } from "./crontab.js";
import type { Exported, Stored } from "./exported.js";

/* Modules that only an export needs, loaded by it. */
export { definitionOf } from "@carillon/sdk";

interface Written {
  readonly tasks: readonly Exported<unknown>[];
  readonly text: string;
}

function writer<There>(
  convert: (one: Stored, now: number) => Exported<There>,
  textOf: (all: Exported<There>[]) => string,
) {
  return (stored: readonly Stored[], now: number): Written => {
    const tasks = stored.map((one) => convert(one, now));
    return { tasks, text: textOf(tasks) };
  };
}

const asIs = ({ definition }: Stored): Exported<Stored["definition"]> => ({
  task: `${definition.owner}/${definition.id}`,
  there: definition,
  notes: [],
});

/** Systems that stored tasks are written for. */
export const WRITERS = {
  bullmq: writer(toBullmq, bullmqModule),
  crontab: writer(toCrontab, crontabText),
  json: writer(
    asIs,
    (all) =>
      `${JSON.stringify(
        all.map(({ there }) => there),
        undefined,
        2,
      )}\n`,
  ),
};
