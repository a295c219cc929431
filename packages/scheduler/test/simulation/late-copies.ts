import type { Store } from "@carillon/store";
import { internalsOf, onceOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";
import type { Dice } from "./dice.js";
import { digest } from "./digest.js";

type Sent = Parameters<ReturnType<typeof internalsOf>["link"]["run"]>;

interface Copy {
  readonly sent: Sent;
  answered: boolean;
  /** Its answer says that it was done, not that it has to wait or to be decided again. */
  done: boolean;
}

/** Copies that are kept: the newest. */
const MOST = 200;
/** Scripts whose requests may arrive late although no copy of them arrived in time: the checks need not know of their effect. */
const FIRST_LATE = /^(commit|start-run|settle-run|replan|put|pause|resume|delete)$/;

/** Answers to requests that may still be done when they arrive later. */
const NOT_DONE = /"(EARLY|LATE|LIMITED|LIVE|WAIT|STALE|OVERLAP|LEFT|THAWED|CONFLICT|ERROR\b.*)"/;

/** Copies of the requests of all actors, which arrive once more at a later moment. */
export class LateCopies {
  #copies: Copy[] = [];

  /** Keeps copies of this store's requests. */
  watch(store: Store): void {
    const { link } = internalsOf(store);
    const run = link.run.bind(link);
    link.run = async (...sent) => {
      const copy = { sent, answered: false, done: false };
      this.#copies.push(copy);
      if (this.#copies.length > MOST) this.#copies.shift();
      const answer = await run(...sent);
      copy.answered = true;
      copy.done = !NOT_DONE.test(JSON.stringify(answer));
      return answer;
    };
  }

  forget(): void {
    this.#copies = [];
  }

  /**
   * Delivers a copy. If its request was done before, it must change nothing, unless it may be repeated at any time.
   * Returns the script's name, and whether it changed something; undefined: there was none.
   */
  async deliver(redis: Redis, dice: Dice): Promise<{ name: string; changed: boolean } | undefined> {
    const found = this.#copies
      .filter(
        ({ sent: [{ name }], answered }) => onceOf(name) !== "reads" && (answered || FIRST_LATE.test(name)),
      )
      .sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
    if (found.length === 0) return undefined;
    const { sent, done } = dice.pick(found);
    const [{ name, lua }, keys, args] = sent;
    const compared = done && typeof onceOf(name) === "string";
    const before = compared && (await digest(redis));
    await redis.eval(lua, keys.length, ...keys, ...args).catch(() => {});
    return { name, changed: compared && before !== (await digest(redis)) };
  }
}

/** Branches of one move may send in any order, and the choice of the dice must not depend on it. */
function textOf({ sent: [{ name }, keys, args] }: Copy): string {
  return [name, ...keys, ...args].join(" ");
}
