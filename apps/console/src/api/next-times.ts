import { previewSchedule, type Schedule } from "@carillon/sdk";

type Preview = ReturnType<typeof previewSchedule>;
type Options = Parameters<typeof previewSchedule>[1];

/** Times looked for at once. */
const SLICE = 5;
/** How long times are looked for, in ms: strangers can write schedules of which each time takes long to find. */
const BUDGET_MS = 250;
/** How many excluded times are named. */
const MAX_EXCLUDED = 100;

/** The next times of a schedule: `options.count` of them, fewer where that takes longer than `budget` ms. */
export function nextTimes(
  schedule: Schedule,
  options: Options,
  budget = BUDGET_MS,
): Pick<Preview, "timezone" | "times" | "excluded" | "exhausted"> {
  const enough = performance.now() + budget;
  const next = (from: number, found: number) =>
    previewSchedule(schedule, { ...options, from, count: Math.min(SLICE, options.count - found) });
  let slice = next(options.from, 0);
  const times = [...slice.times];
  const excluded = [...slice.excluded];
  while (!slice.exhausted && times.length < options.count && performance.now() < enough) {
    slice = next(times.at(-1)?.time ?? options.from, times.length);
    times.push(...slice.times);
    excluded.push(...slice.excluded);
  }
  const { timezone, exhausted } = slice;
  return { timezone, times, excluded: excluded.slice(0, MAX_EXCLUDED), exhausted };
}
