import { defined } from "./defined.js";
import type { AlertBody } from "./destinations/destination.js";
import { endedBy } from "./destinations/text.js";
import { utf8Length } from "./json.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Least time from one digest about a cause to the next one, in ms: of the first, the second and so on; the last is for all others. */
const PACE = [0, 5 * MINUTE, 15 * MINUTE, HOUR];
/** Causes, and tasks of each, that are told apart; further ones are only counted. */
const [MOST_GROUPS, MOST_TASKS] = [100, 1_000];
/** Earlier alerts that a digest ends one by one. */
const MOST_CLOSED = 100;
/** Alerts that are known if they come again, as they do when a node dies after it took them. */
const MOST_SEEN = 2_000;
/** Characters of an alert's id that tell it from these. */
const MARK = 10;
/** Bytes of the bodies of a digest, as JSON. A single body has less. */
const LARGEST = 200_000;
/** Tasks of a group that a digest names. */
const NAMED = 20;

/** The alert of a task was sent alone, or is in a digest; or its incident is over. */
const [ALONE, COLLECTED, OVER] = [0, 1, 2];

/** The alerts of one kind and cause. */
interface Group {
  readonly kind: string;
  /** The first alert that no digest has told. */
  body: AlertBody;
  /** State of the alert of each task, or of another subject. */
  tasks: Record<string, number>;
  /** Its first and last alert or recovery, UTC ms. */
  begun: number;
  last: number;
  /** Alerts and recoveries that no digest has told, and when the first of them came; 0: there are none. */
  fresh: number;
  over: number;
  since: number;
  /** Earlier alerts that were sent alone and whose incidents are over since. */
  closed: NonNullable<AlertBody["closed"]>;
  /** Whether further alerts of it go into digests. */
  storm: boolean;
  /** Digests about it, and the time of the last one. */
  digests: number;
  told: number;
}

/** Messages that one destination got lately, and those that it is to get. JSON. */
export interface Collected {
  /** Beginning of its current minute, and messages in it. */
  minute: number;
  sent: number;
  /** Time of its last digest. */
  told: number;
  /** End of the last quiet time. */
  quiet: number;
  /** Whether it gets recoveries. */
  ends: boolean;
  /** The newest alerts, each as `+` if it was sent alone, or `-`, and its id. */
  readonly seen: string[];
  readonly groups: Record<string, Group>;
}

/** A job that sends alerts. */
export interface Job {
  readonly id: string;
  readonly owner: string;
  readonly type: string;
  /** As `deliveryPayload` makes it: with secrets. */
  readonly payload: Record<string, unknown>;
}

/** The stored state of a destination. */
export interface Destined extends Collected {
  /** The job of its digests, without alerts. */
  readonly to: Omit<Job, "id">;
  /** A digest that was taken out, and is not known to be enqueued. */
  outgoing?: Job | undefined;
}

/** Undefined if it is corrupt or foreign. */
export function destined(stored: unknown): Destined | undefined {
  const { groups, seen, to } = Object(stored) as Partial<Destined>;
  return groups && to && Array.isArray(seen) ? (stored as Destined) : undefined;
}

export function kindsOf({ groups }: Collected): string[] {
  const waiting = Object.values(groups).filter(({ since }) => since > 0);
  return [...new Set(waiting.map(({ kind }) => kind))];
}

export function nothingCollected(): Collected {
  return { minute: 0, sent: 0, told: 0, quiet: 0, ends: true, seen: [], groups: {} };
}

/** An alert for one destination. */
interface Given {
  /** The same each time this alert is given. */
  readonly id: string;
  readonly body: AlertBody;
}

interface Rules {
  /** Alerts that are sent alone in a minute. */
  readonly perMinute: number;
  /** End of the current quiet time, UTC ms. */
  readonly quiet: number | undefined;
  /** Whether the destination gets recoveries. */
  readonly ends: boolean;
}

/**
 * Notes an alert. It goes alone as long as the minute has a place for it. From the first one without a place on, those of its kind and
 * cause are collected, until the cause is over or is quiet for an hour. The recovery of a task in a group that is collected joins the group.
 *
 * @returns whether it is to be sent alone; the same for an alert that is given again
 */
export function collect(state: Collected, { id, body }: Given, now: number, rules: Rules): boolean {
  const mark = id.slice(0, MARK);
  const known = state.seen.find((one) => one.slice(1) === mark);
  if (known !== undefined) return known.startsWith("+");
  forget(state, now);
  if (rules.quiet !== undefined) state.quiet = rules.quiet;
  state.ends = rules.ends;
  const alone = !joins(state, body, now) && raise(state, body, now, rules);
  state.seen.push(`${alone ? "+" : "-"}${mark}`);
  if (state.seen.length > MOST_SEEN) state.seen.shift();
  return alone;
}

/** Whether a recovery belongs to a group that is collected. Ends the incidents of its task in all groups. */
function joins(state: Collected, body: AlertBody, now: number): boolean {
  const subject = subjectKey(body);
  const kinds = body.kind === "recovered" ? endedBy(body) : [];
  let [joined, alone]: [Group | undefined, boolean] = [undefined, false];
  for (const [key, group] of Object.entries(state.groups)) {
    if (!kinds.includes(group.kind)) continue;
    const was = group.tasks[subject] ?? (group.storm && isFull(group) ? COLLECTED : OVER);
    if (was === OVER) continue;
    if (was === ALONE) alone = true;
    if (!group.storm && was === ALONE) {
      delete group.tasks[subject];
      if (openOf(group) === 0) delete state.groups[key];
      continue;
    }
    if (Object.hasOwn(group.tasks, subject)) group.tasks[subject] = OVER;
    group.over += 1;
    touch(group, now);
    joined = group;
  }
  if (joined && alone) close(joined, body);
  return joined !== undefined;
}

function close(group: Group, { task, code, queue, type, ended }: AlertBody): void {
  if (group.closed.length >= MOST_CLOSED) return;
  group.closed = [...group.closed, { ...(task ? { task } : { code, queue, type }), ended }];
}

/** @returns whether it is to be sent alone */
function raise(state: Collected, body: AlertBody, now: number, rules: Rules): boolean {
  const { kind, cause, code } = body;
  const own = [kind, cause ?? code].filter(Boolean).join(" ");
  const fits = Object.hasOwn(state.groups, own) || Object.keys(state.groups).length < MOST_GROUPS;
  const key = fits ? own : kind;
  const group = groupAt(state, key) ?? emptyGroup(body, now);
  state.groups[key] = group;
  const idle = now - group.last >= HOUR && group.since === 0;
  if (idle) {
    Object.assign(group, { begun: now, digests: 0 });
    for (const [one, is] of Object.entries(group.tasks))
      if (is === OVER || !rules.ends) delete group.tasks[one];
  }
  const alone = (!group.storm || idle) && group.since === 0 && takesPlace(state, now, rules);
  const opens = kind !== "recovered";
  const subject = subjectKey(body);
  if (Object.hasOwn(group.tasks, subject) || !isFull(group))
    group.tasks[subject] = !opens ? OVER : alone ? ALONE : COLLECTED;
  if (alone) {
    group.last = now;
    if (!opens) delete state.groups[key];
    return true;
  }
  if (!opens) close(group, body);
  if (group.fresh === 0) group.body = body;
  group.fresh += 1;
  touch(group, now);
  return false;
}

function takesPlace(state: Collected, now: number, { perMinute, quiet }: Rules): boolean {
  if (quiet !== undefined) return false;
  if (Math.abs(now - state.minute) >= MINUTE) Object.assign(state, { minute: now, sent: 0 });
  if (state.sent >= perMinute) return false;
  state.sent += 1;
  return true;
}

function groupAt({ groups }: Collected, key: string): Group | undefined {
  return Object.hasOwn(groups, key) ? groups[key] : undefined;
}

function touch(group: Group, now: number): void {
  group.last = now;
  if (group.since === 0) group.since = now;
}

function emptyGroup(body: AlertBody, now: number): Group {
  const none = { fresh: 0, over: 0, since: 0, closed: [], storm: false, digests: 0, told: 0 };
  return { kind: body.kind, body, tasks: {}, begun: now, last: now, ...none };
}

/** When a digest is due; without one, when something may be forgotten. UTC ms. */
export function collectedUntil({ groups, minute, told, quiet }: Collected): number {
  const all = Object.values(groups);
  const waiting = all.filter(({ since }) => since > 0);
  if (waiting.length > 0) return Math.max(Math.min(...waiting.map(dueOf)), told + MINUTE, quiet);
  return all.length === 0 ? minute + MINUTE : Math.min(...all.map(({ last }) => last)) + DAY;
}

function dueOf(group: Group): number {
  // Its end lasts for a minute, so that tasks that fail and recover by turns do not end it each time.
  if (isOver(group)) return group.last + MINUTE;
  return Math.max(group.since + MINUTE, group.told + (PACE[Math.min(group.digests, PACE.length - 1)] ?? 0));
}

/** Takes what is collected, if it is due: a body for each group. What does not fit stays for the next one. Empty: nothing is due. */
export function takeDigest(state: Collected, now: number): readonly AlertBody[] {
  forget(state, now);
  const waiting = Object.entries(state.groups).filter(([, { since }]) => since > 0);
  if (waiting.length === 0 || now < collectedUntil(state)) return [];
  state.told = now;
  const bodies: AlertBody[] = [];
  let size = 0;
  for (const [key, group] of waiting.sort(([, a], [, b]) => a.since - b.since)) {
    const body = bodyOf(group, state.ends);
    size += utf8Length(JSON.stringify(body));
    if (size > LARGEST && bodies.length > 0) break;
    bodies.push(body);
    if (openOf(group) === 0) delete state.groups[key];
    else markSent(group, now);
  }
  return bodies;
}

function markSent(group: Group, now: number): void {
  group.storm ||= group.fresh > 1;
  if (group.storm) group.digests += 1;
  else for (const [subject, is] of Object.entries(group.tasks)) if (is !== OVER) group.tasks[subject] = ALONE;
  Object.assign(group, { fresh: 0, over: 0, since: 0, closed: [], told: now });
}

/** Whether nothing of it matters any more. */
export function isForgotten(state: Collected, now: number): boolean {
  return Object.keys(state.groups).length === 0 && Math.abs(now - state.minute) >= MINUTE;
}

function forget(state: Collected, now: number): void {
  // The clock of Redis may have gone back: digests must not wait until it is there again.
  state.told = Math.min(state.told, now);
  for (const [key, group] of Object.entries(state.groups)) {
    if (group.since === 0 && Math.abs(now - group.last) >= DAY) delete state.groups[key];
    for (const time of ["begun", "last", "since", "told"] as const) group[time] = Math.min(group[time], now);
  }
}

/** One alert in full; several as one, with their number. */
function bodyOf(group: Group, recovers: boolean): AlertBody {
  const { fresh, over, body, closed, kind } = group;
  // Shared by all its alerts, or those of the first one.
  const { namespace, cause, code, outcome, error, message, link } = body;
  const [subjects, open] = [Object.keys(group.tasks), openOf(group)];
  if (fresh === 1 && !group.storm) return over > 0 && kind !== "recovered" ? { ...body, open: 0 } : body;
  const ends = fresh === 0 || isOver(group);
  const names = subjects.map((subject) => subject.split(" "));
  const distinct = (part: number) => new Set(names.map((name) => name[part])).size;
  const named = subjects.filter((subject) => open === 0 || group.tasks[subject] !== OVER).slice(0, NAMED);
  return {
    ...defined({ namespace, cause, code, outcome, error, message, link }),
    ...(ends ? { kind: "recovered", ended: [kind] } : { kind }),
    at: group.last,
    since: group.begun,
    alerts: ends ? over : fresh,
    ...(body.task && {
      ...{ tasks: subjects.length, owners: distinct(1), queues: distinct(0) },
      named: named.map((subject) => subject.split(" ").slice(1).join("/")),
    }),
    ...(kind !== "recovered" && recovers && { open }),
    ...(closed.length > 0 && { closed }),
  };
}

/** Whether nothing is open any more of a group that digests were sent about. */
function isOver(group: Group): boolean {
  return group.storm && openOf(group) === 0;
}

function openOf({ tasks }: Group): number {
  return Object.values(tasks).filter((is) => is !== OVER).length;
}

function isFull({ tasks }: Group): boolean {
  return Object.keys(tasks).length >= MOST_TASKS;
}

/** A task's queue, owner and id. No name has a space. */
function subjectKey({ task, code, queue, type }: AlertBody): string {
  return task ? `${task.queue} ${task.owner} ${task.id}` : `${code} ${queue} ${type}`;
}
