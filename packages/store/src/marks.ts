import { newToken } from "./ids.js";
import type { Link } from "./redis/link.js";

/** The arguments of a script that is protected by a mark (script/lib/once.lua). */
export interface Once {
  readonly subject: string;
  /** Mark of the newest change that the caller has seen; "" none. */
  readonly seen: string;
  /** Mark of this change. */
  readonly mark: string;
}

/** Names of these arguments. */
export const ONCE_ARGS = ["subject", "seen", "mark"] as const;

/** Answer to a change that another one has outdated. */
type Outdated = "STALE";

/**
 * Makes changes that a late copy of their request cannot repeat: each names the newest change that it has seen, and is
 * decided again if another one came first.
 */
export class Marks {
  constructor(private readonly link: Link) {}

  /**
   * @param marks the key of the marks, in the slot of what is changed
   * @param subject the thing that is changed
   * @param attempt reads, decides and sends the change; an undefined answer is final too
   */
  async change<T>(
    marks: string,
    subject: string,
    attempt: (once: Once) => Promise<T | Outdated>,
  ): Promise<Exclude<T, Outdated>> {
    for (;;) {
      const seen = (await this.link.ask((client) => client.hget(marks, subject))) ?? "";
      const answer = await attempt({ subject, seen, mark: newToken() });
      if (answer !== "STALE") return answer as Exclude<T, Outdated>;
    }
  }
}
