import { setImmediate } from "node:timers/promises";
import { type PreviewOptions, previewSchedule, type Schedule } from "@carillon/core";
import { previewYear, type YearDay } from "@carillon/core/internal";

type Preview = ReturnType<typeof previewSchedule>;
type Options = PreviewOptions & { readonly from: number; readonly count: number };

/** Number of times computed in one slice; other requests are handled between slices. */
const SLICE = 5;
/** Limit of the computation in ms: each time of a hostile schedule may take long. */
const BUDGET_MS = 250;
/** Most excluded times in the answer. */
const MAX_EXCLUDED = 100;

/** The next `options.count` times of a schedule, or fewer if that takes longer than `budget` ms. */
export async function nextTimes(
  schedule: Schedule,
  options: Options,
  budget = BUDGET_MS,
): Promise<Pick<Preview, "timezone" | "times" | "excluded" | "exhausted">> {
  let worked = 0;
  const next = (from: number, found: number) => {
    const begun = performance.now();
    const count = Math.min(SLICE, options.count - found);
    const preview = previewSchedule(schedule, { ...options, from, count });
    worked += performance.now() - begun;
    return preview;
  };
  let slice = next(options.from, 0);
  const times = [...slice.times];
  const excluded = [...slice.excluded];
  while (!slice.exhausted && times.length < options.count && worked < budget) {
    await setImmediate();
    slice = next(times.at(-1)?.time ?? options.from, times.length);
    times.push(...slice.times);
    excluded.push(...slice.excluded);
  }
  const { timezone, exhausted } = slice;
  return { timezone, times, excluded: excluded.slice(0, MAX_EXCLUDED), exhausted };
}

/** The days of a year, or the first of them if that takes longer than `budget` ms. */
export async function yearOf(
  schedule: Schedule,
  options: Parameters<typeof previewYear>[1],
  budget = BUDGET_MS,
): Promise<YearDay[]> {
  const days: YearDay[] = [];
  let worked = 0;
  let begun = performance.now();
  for (const day of previewYear(schedule, options)) {
    days.push(day);
    worked += performance.now() - begun;
    if (worked >= budget) break;
    if (days.length % SLICE === 0) await setImmediate();
    begun = performance.now();
  }
  return days;
}
