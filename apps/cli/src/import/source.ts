import type { Imported, ImportOptions, SetTask } from "@carillon/ops/internal";

/** A task of the set that an import writes. */
export type Task = SetTask;

export interface SourceOptions extends ImportOptions {
  /** Queue of tasks whose system has none. */
  readonly queue: string;
  /** crontab: its lines name a user. */
  readonly system?: boolean | undefined;
}

/** Reads what another system has written: pure. @throws `INVALID_OPTION` if the text is something else */
export type Source = (text: string, options: SourceOptions) => Imported[];
