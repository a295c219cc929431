import { relative } from "@carillon/ops/words";
import type * as Sdk from "@carillon/sdk/schedule";
import type { Output } from "../output.js";
import type { Range } from "../question.js";
import { type Column, table } from "../table.js";
import { facts } from "../text.js";
import { localIso, utcIso } from "../times.js";

export const TIMES_COMPARED = 1_000;

interface Question extends Range {
  readonly expression: string;
  readonly dialect: string | undefined;
  readonly json: boolean | undefined;
}

/** Shows the first times at which only one of Carillon and cron-parser fires. */
export async function compareOne(sdk: typeof Sdk, question: Question, out: Output): Promise<void> {
  const { expression, from, count, timezone, dialect } = question;
  // The SDK refuses an unknown dialect.
  const options = { from, count, timezone, dialect } as Sdk.CompareCronOptions;
  const found = sdk.compareCron(expression, options);
  if (question.json) return out.json(documentOf(found));
  const { differences, ended } = found;
  const head = facts(
    [
      ["cron", expression],
      ["result", resultOf(found)],
      ["note", ended && `cron-parser finds no time after ${utcIso(ended.after)}: ${ended.message}`],
    ],
    out.paint,
  );
  const columns: Column<Sdk.CronDifference>[] = [
    { title: "UTC", value: ({ time }) => utcIso(time) },
    { title: "LOCAL", value: ({ time }) => localIso(time, timezone ?? "UTC") },
    { title: "", value: ({ time }) => relative(time, from) },
    { title: "ONLY", value: ({ only }) => only },
  ];
  await out.write(
    differences.length ? `${head}\n${table(columns, differences, { paint: out.paint })}` : head,
  );
}

function resultOf({ differences, compared, until, refused }: Sdk.CronComparison): string {
  if (refused) return `refused by ${refused.by}: ${refused.message}`;
  if (until === undefined) return "neither ever fires";
  const times = `${compared} times, until ${utcIso(until)}`;
  if (differences.length === 0) return `no difference in the next ${times}`;
  return `${differences.length} of the next ${times}, are of one side only`;
}

/** Its times as texts. */
function documentOf({ differences, until, ended, ...rest }: Sdk.CronComparison): object {
  return {
    ...rest,
    ...(until === undefined ? {} : { until: utcIso(until) }),
    differences: differences.map(({ time, only }) => ({ time: utcIso(time), only })),
    ...(ended ? { ended: { ...ended, after: utcIso(ended.after) } } : {}),
  };
}
