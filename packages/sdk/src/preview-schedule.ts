import {
  type PreviewOptions,
  previewSchedule as previewFrom,
  type Schedule,
  type SchedulePreview,
} from "@carillon/core";

/**
 * The next times of a schedule that has not run yet, as texts for people, with notes about special ones. Without `from`:
 * those after now.
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`, `INVALID_OPTION`
 */
export function previewSchedule(
  schedule: Schedule,
  options: Omit<PreviewOptions, "from"> & { readonly from?: PreviewOptions["from"] | undefined } = {},
): SchedulePreview {
  const { from = Date.now() } = options;
  return previewFrom(schedule, { ...options, from });
}
