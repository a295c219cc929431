import {
  CarillonError,
  type Json,
  MAX_PRIORITY,
  OVERLAP_POLICIES,
  type Policies,
  type Schedule,
} from "@carillon/core";
import { isName, type Pending, policySchema, TRIGGERS } from "@carillon/core/internal";

/**
 * Readers of a task hash's fields. Each throws on data that no version of Carillon writes, so that the corrupt task is left
 * alone and the decisions about others do not depend on it.
 */

/** 2^53 has 16. */
const INTEGER = /^-?\d{1,16}$/;

export function integer(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!INTEGER.test(text)) throw nonsense();
  return Number(text);
}

export function priority(text: string | undefined): number {
  const value = integer(text) ?? 0;
  if (value < 0 || value > MAX_PRIORITY) throw nonsense();
  return value;
}

/** Digits: it is compared as text, and scripts count it up. */
export function generation(text: string | undefined): string {
  if (text === undefined || !/^\d{1,16}$/.test(text)) throw nonsense();
  return text;
}

export function oneOf<Word extends string>(
  words: readonly Word[],
  text: string | undefined,
  fallback: Word,
): Word {
  const word = (text ?? fallback) as Word;
  if (!words.includes(word)) throw nonsense();
  return word;
}

export function name(text: string | undefined): string {
  if (!isName(text)) throw nonsense();
  return text;
}

export function json(text: string): Json {
  return JSON.parse(text) as Json;
}

/** Parses a stored schedule without checking it; compiling it does. */
export function schedule(text: string): Schedule {
  return record(json(text)) as unknown as Schedule;
}

/** Keeps only policies: no other key may replace one of the task's own fields. */
export function policies(text: string | undefined): Policies {
  return text === undefined ? {} : policySchema.parse(json(text));
}

export function pending(text: string | undefined): Pending[] {
  if (text === undefined) return [];
  const list = json(text);
  if (!Array.isArray(list)) throw nonsense();
  for (const item of list) {
    const { key, nominal, due, trigger, missed, at, overlap, by, trace } = record(item);
    const whole = Number.isSafeInteger(nominal) && Number.isSafeInteger(due);
    const later = at === undefined || Number.isSafeInteger(at);
    const known = TRIGGERS.some((one) => one === trigger);
    const own = overlap === undefined || (OVERLAP_POLICIES as readonly unknown[]).includes(overlap);
    const named = [by, trace].every((text) => text === undefined || typeof text === "string");
    if (typeof key !== "string" || !named || !whole || !later || !known || !own) throw nonsense();
    if (missed !== undefined) {
      const { from, to } = record(missed);
      if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) throw nonsense();
    }
  }
  return list as unknown as Pending[];
}

/** The run whose end gives the next time, and the delay after it. */
export function waiting(text: string | undefined): { run: string; delay: number } | undefined {
  if (text === undefined) return undefined;
  const [, run, delay] = /^(\S+) (\d{1,16})$/.exec(text) ?? [];
  if (run === undefined) throw nonsense();
  return { run, delay: Number(delay) };
}

/** A task's place in a set. */
export interface InSet {
  readonly name: string;
  /** Queue that the set names: a person may have moved the task since. */
  readonly filed: string;
  /** Revision that the set stored; undefined: it was removed from the set. */
  readonly revision: string | undefined;
  /** Time of that put, or of the removal; UTC ms. */
  readonly at: number;
}

/** `name filed revision at`; the revision is `-` for a task that was removed from its set. */
export function inSet(text: string | undefined): InSet | undefined {
  if (text === undefined) return undefined;
  const [, set, filed, revision, at] = /^(\S+) (\S+) (\d{1,16}|-) (\d{1,16})$/.exec(text) ?? [];
  return {
    name: name(set),
    filed: name(filed),
    at: Number(at),
    revision: revision === "-" ? undefined : revision,
  };
}

function record(value: Json | undefined): Record<string, Json | undefined> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw nonsense();
  return value;
}

function nonsense(): CarillonError {
  return new CarillonError("UNSUPPORTED_FORMAT", "corrupt or foreign data.");
}
