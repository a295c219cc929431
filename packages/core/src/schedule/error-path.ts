import { CarillonError } from "../errors.js";

/**
 * Runs a function whose errors name fields `schedule.…`, and replaces this prefix by the path of a part of the schedule:
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
