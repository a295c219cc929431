import { HttpError } from "./errors.js";

/** Most requests to one receiver at the same time. */
const MOST = 3;
/** Longest wait for one of these places while no request ends, in ms. */
const PATIENCE = 1_000;

interface Receiver {
  /** Requests under way. */
  busy: number;
  /** It did not answer the last request that ended. */
  silent: boolean;
  /** Resolve those that wait for a place. */
  readonly waiting: (() => void)[];
}

/**
 * Shares a worker's places among receivers. Each has few requests at a time, and one that did not answer its last request only one: the others
 * fail at once, and are tried again as after any failure. So a receiver that hangs does not take all places of a worker.
 */
export class Receivers {
  readonly #known = new Map<string, Receiver>();

  async ask<Answer>(name: string, send: () => Promise<Answer>): Promise<Answer> {
    const receiver = this.#known.get(name) ?? { busy: 0, silent: false, waiting: [] };
    this.#known.set(name, receiver);
    while (receiver.busy >= (receiver.silent ? 1 : MOST)) {
      if (receiver.silent || !(await endOfOne(receiver)))
        throw new HttpError(
          "HTTP_UNREACHABLE",
          `${name} does not answer: an earlier request is still under way.`,
        );
    }
    receiver.busy += 1;
    try {
      const answer = await send();
      receiver.silent = false;
      return answer;
    } catch (error) {
      const { code } = error as { code?: unknown };
      // An abort tells nothing about the receiver.
      if (code !== "HTTP_ABORTED") receiver.silent = code === "HTTP_TIMEOUT" || code === "HTTP_UNREACHABLE";
      throw error;
    } finally {
      receiver.busy -= 1;
      for (const wake of receiver.waiting.splice(0)) wake();
      if (receiver.busy === 0 && !receiver.silent) this.#known.delete(name);
    }
  }
}

/** Waits until a request ends. @returns false: none did in time */
async function endOfOne({ waiting }: Receiver): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(wake), 1);
      resolve(false);
    }, PATIENCE);
    const wake = () => {
      clearTimeout(timer);
      resolve(true);
    };
    waiting.push(wake);
  });
}
