import type { AnswerTo } from "@carillon/ops";
import { duration, FAILURES, reasonText, remedyText } from "@carillon/ops/words";
import type { Outcome, RunningRun, Task } from "@carillon/sdk";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { firstLine, runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { useVoice } from "../lib/time.js";
import { List, Loaded, PageHead, Row } from "../parts/page.js";
import { Badge, OutcomeBadge, type Tone } from "../parts/state.js";
import { Relative } from "../parts/time.js";
import { words } from "../words.js";

type Status = AnswerTo<"health.status">;
type StatusReason = Status["reasons"][number];

const w = words.now;
const SHOWN = 8;
const FAILED = [...FAILURES];
const TONES: Record<Status["state"], Tone> = { "on-time": "ok", behind: "warn", stopped: "bad" };

/** Read interval of data that change with time alone, in ms. */
const OFTEN = 10_000;
/** A run is long if it takes this many times its usual duration, and this many ms more than that. */
const LONG = { times: 2, ms: 5_000 };

/** The start page: what needs attention, then what is running. */
export function Now() {
  const me = useMe();
  return (
    <>
      <PageHead title={w.title} />
      <div className="stack">
        <Truth />
        <LastHour />
        <div className="panels">
          <Failing />
          <Overdue />
          <Running />
          <Next />
          <Paused />
          {me.wide ? <Queues /> : null}
        </div>
      </div>
    </>
  );
}

/** Page on which each reason can be fixed; the others are fixed outside of the console. */
const PLACES: Partial<Record<StatusReason["code"], string>> = {
  NO_NODE: "/system",
  NODES_NOT_READY: "/system",
  QUEUE_PAUSED: "/system",
  NO_WORKER: "/system",
  JOBS_NOT_TAKEN: "/system",
  FROZEN: "/freezes",
  ALERTS_UNDELIVERED: "/alerts",
  ALERTS_FAIL: "/alerts",
  OVERDUE: "/tasks?filter=overdue",
  JOBS_WAIT: "/runs",
};

/** The status in one line, each reason why it is not "on time", and notes: what somebody holds on purpose, receivers that do not take alerts. */
function Truth() {
  const status = useCall("health.status", {}, { every: OFTEN });
  return (
    <Loaded of={status}>
      {({ state, behind, nodes, workers, reasons, notes }) => (
        <div className="stack">
          <div className="note" data-tone={TONES[state]}>
            <p>
              <strong>
                {state === "on-time" ? w.onTime : state === "behind" ? w.behind(duration(behind)) : w.stopped}
              </strong>{" "}
              <span className="soft">{w.counts(nodes.alive, nodes.ready, workers.alive)}</span>
            </p>
            {reasons.length === 0 ? null : <Reasons of={reasons} />}
          </div>
          {notes.length === 0 ? null : (
            <div className="note">
              <p>
                <strong>{w.held}</strong>
              </p>
              <Reasons of={notes} />
            </div>
          )}
        </div>
      )}
    </Loaded>
  );
}

function Reasons({ of }: { of: readonly StatusReason[] }) {
  return (
    <ul className="stack">
      {of.map((reason) => (
        <Reason key={JSON.stringify(reason)} reason={reason} />
      ))}
    </ul>
  );
}

function Reason({ reason }: { reason: StatusReason }) {
  const { code, since } = reason;
  const voice = useVoice();
  const { wide } = useMe();
  const place = wide || PLACES[code] !== "/system" ? PLACES[code] : undefined;
  return (
    <li>
      {reasonText(reason, voice)}{" "}
      {since === undefined ? null : (
        <span className="soft">
          <Relative at={since} />
        </span>
      )}
      <br />
      <span className="soft">{remedyText(reason, voice)} </span>
      {place === undefined ? null : <Link href={place}>{w.places[code]}</Link>}
    </li>
  );
}

/** A time at the end of a row, if it is known. */
function End({ at, children }: { at: number | undefined; children?: ReactNode }) {
  if (at === undefined) return null;
  return (
    <span className="end soft">
      {children}
      <Relative at={at} />
    </span>
  );
}

const tasksOf = ({ tasks }: { tasks: readonly Task[] }) => tasks;

function Failing() {
  const tasks = useCall("tasks.list", { outcome: FAILED, limit: SHOWN });
  return (
    <List title={w.failing} more="/tasks?filter=failing" of={tasks} items={tasksOf} none={w.noneFailing}>
      {(task) => (
        <Row key={taskPath(task)} href={taskPath(task)} name={shortName(task)}>
          {task.lastStatus?.outcome ? <OutcomeBadge outcome={task.lastStatus.outcome} /> : null}
          <End at={task.lastStatus?.finishedAt} />
          {task.lastStatus?.error ? (
            <Link href={runPath(task.lastStatus.run)} className="wide small soft cut">
              {firstLine(task.lastStatus.error)}
            </Link>
          ) : null}
        </Row>
      )}
    </List>
  );
}

/** Figures of the last hour, and how many tasks each filter of the list finds. */
function LastHour() {
  const summary = useCall("runs.summary", {}, { refresh: 6 * OFTEN });
  const counts = useCall("tasks.counts", {}, { every: OFTEN });
  return (
    <Loaded of={summary}>
      {({ ended, outcomes, lateMs, waitMs, durationMs, read }) => (
        <section className="panel" aria-label={w.lastHour}>
          <dl className="figures body">
            <Figure name={w.ended} value={ended.toLocaleString("en")}>
              {failuresIn(outcomes) > 0 ? w.failed(failuresIn(outcomes)) : null}
            </Figure>
            <Spread name={w.late} of={lateMs} />
            <Spread name={w.waited} of={waitMs} />
            <Spread name={w.took} of={durationMs} />
            {counts.data === undefined ? null : (
              <Figure name={w.tasks} value={counts.data.all.toLocaleString("en")}>
                {w.states(counts.data.states.paused, counts.data.overdue)}
              </Figure>
            )}
          </dl>
          {read < ended ? <p className="body small soft">{w.sampled(read)}</p> : null}
        </section>
      )}
    </Loaded>
  );
}

function failuresIn(outcomes: Partial<Record<Outcome, number>>): number {
  return [...FAILURES].reduce((sum, one) => sum + (outcomes[one] ?? 0), 0);
}

function Figure({ name, value, children }: { name: string; value: string; children?: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {children ? <span className="block soft small">{children}</span> : null}
      </dd>
    </div>
  );
}

/** The median, and the tail of the distribution below it. */
function Spread({ name, of }: { name: string; of: AnswerTo<"runs.summary">["lateMs"] }) {
  if (of === undefined) return null;
  return (
    <Figure name={name} value={duration(of.p50)}>
      {w.tail(duration(of.p99))}
    </Figure>
  );
}

/** Occurrences that are due and that no node has claimed. */
function Overdue() {
  const tasks = useCall("tasks.list", { overdue: true, sort: "next", limit: SHOWN }, { every: OFTEN });
  return (
    <List title={w.overdue} more="/tasks?filter=overdue&sort=next" of={tasks} items={tasksOf}>
      {(task) => (
        <Row key={taskPath(task)} href={taskPath(task)} name={shortName(task)}>
          <span className="soft small">{task.queue}</span>
          <End at={task.nextExecution}>{w.due} </End>
        </Row>
      )}
    </List>
  );
}

function isLong({ runningMs, usualMs }: RunningRun): boolean {
  return usualMs !== undefined && runningMs > Math.max(LONG.times * usualMs, usualMs + LONG.ms);
}

function Running() {
  const runs = useCall("runs.active", { limit: SHOWN }, { every: OFTEN });
  return (
    <List title={w.running} more="/runs" of={runs} items={({ runs }) => runs} none={w.noneRunning}>
      {(run) => (
        <Row key={run.id} href={runPath(run.id)} name={shortName(run.task)}>
          {isLong(run) ? <Badge tone="warn">{w.long}</Badge> : null}
          <span className="soft small">{run.host ?? run.worker}</span>
          <span className="end soft">
            <Relative at={run.started ?? run.enqueued} />
            {run.usualMs === undefined ? "" : ` (${words.runs_.usually(duration(run.usualMs))})`}
          </span>
        </Row>
      )}
    </List>
  );
}

function Next() {
  const upcoming = useCall("occurrences.upNext", { limit: SHOWN });
  return (
    <List
      title={w.next}
      more="/tasks?sort=next"
      of={upcoming}
      items={({ upcoming }) => upcoming}
      none={w.noneNext}
    >
      {({ task, due }) => (
        <Row key={taskPath(task)} href={taskPath(task)} name={shortName(task)}>
          <End at={due} />
        </Row>
      )}
    </List>
  );
}

function Paused() {
  const tasks = useCall("tasks.list", { state: "paused", limit: SHOWN });
  return (
    <List title={w.paused} more="/tasks?filter=paused" of={tasks} items={tasksOf} none={w.nonePaused}>
      {(task) => (
        <Row key={taskPath(task)} href={taskPath(task)} name={shortName(task)}>
          {task.paused?.by ? <span className="soft">{w.pausedBy(task.paused.by)}</span> : null}
          <End at={task.paused?.at} />
          {task.paused?.note ? <span className="wide small any">{task.paused.note}</span> : null}
        </Row>
      )}
    </List>
  );
}

function Queues() {
  const queues = useCall("queues.list", {});
  return (
    <List
      title={w.queues}
      more="/system"
      of={queues}
      items={({ queues }) => queues.slice(0, SHOWN)}
      none={w.noQueues}
    >
      {({ name, paused, waiting = 0, active = 0, oldestWaitingMs }) => (
        <Row key={name} href={`/tasks?queue=${encodeURIComponent(name)}`} name={name}>
          {paused ? <Badge tone="warn">{w.queuePaused}</Badge> : null}
          <span className="end soft">
            {w.waiting(waiting)}, {w.active(active)}
            {oldestWaitingMs === undefined ? "" : `, ${w.oldest(duration(oldestWaitingMs))}`}
          </span>
        </Row>
      )}
    </List>
  );
}
