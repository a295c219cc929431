import { CarillonError } from "../errors.js";

/**
 * Runs what names its fields `schedule.…` for a part of a schedule: an error's field becomes that of the part,
 * `schedule.any[2].cron`.
 */
export function within<T>(path: string, run: () => T): T {
  if (path === "schedule") return run();
  try {
    return run();
  } catch (error) {
    const field = error instanceof CarillonError ? error.field : undefined;
    if (!(error instanceof CarillonError) || (field !== undefined && !/^schedule\b/.test(field))) throw error;
    const begin = field === undefined ? 0 : field.length + 2;
    const end = error.remedy === undefined ? undefined : -(error.remedy.length + 1);
    throw new CarillonError(error.code, error.message.slice(begin, end), {
      field: path + (field ?? "schedule").slice("schedule".length),
      ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
      cause: error,
    });
  }
}
