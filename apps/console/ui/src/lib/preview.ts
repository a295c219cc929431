import type { Schedule, Warning } from "@carillon/sdk";

/** Answer of `POST /validate`. Times in UTC ms. */
export interface Preview {
  readonly schedule: Schedule;
  readonly canonical: string;
  readonly humanized: string;
  readonly warnings: readonly Warning[];
  readonly timezone: string;
  readonly next: readonly PreviewTime[];
  readonly excluded: readonly { readonly nominal: number; readonly by: string }[];
  readonly exhausted: boolean;
}

export interface PreviewTime {
  readonly nominal: number;
  /** Present if it is due later, because of jitter. */
  readonly due?: number;
  readonly notes: readonly { readonly code: string; readonly text: string }[];
}
