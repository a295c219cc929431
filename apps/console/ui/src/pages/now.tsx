import type { QueueView, Run, Status, StatusReason, Task, Upcoming } from "@carillon/sdk";
import { Link } from "wouter";
import { runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useGet } from "../lib/query.js";
import { duration } from "../lib/time.js";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.js";
import { Badge, OutcomeBadge, type Tone } from "../parts/state.js";
import { Relative } from "../parts/time.js";
import { words } from "../words.js";

const SHOWN = 8;
export const FAILED = "failed,timed-out,crashed,lost";
const TONES: Record<Status["state"], Tone> = { "on-time": "ok", behind: "warn", stopped: "bad" };

/** The start: what needs somebody, then what goes on. */
export function Now() {
  const me = useMe();
  return (
    <>
      <PageHead title={words.now.title} />
      <div className="stack">
        <Truth />
        <div className="panels">
          <Failing />
          <Running />
          <Next />
          <Paused />
          {me.wide ? <Queues /> : null}
        </div>
      </div>
    </>
  );
}

/** The one line of truth, and each reason why it is not "on time". */
function Truth() {
  const status = useGet<Status>("/status");
  return (
    <Loaded of={status}>
      {({ state, behind, nodes, workers, reasons }) => (
        <div className="note" data-tone={TONES[state]}>
          <p>
            <strong>
              {state === "on-time"
                ? words.now.onTime
                : state === "behind"
                  ? words.now.behind(duration(behind))
                  : words.now.stopped}
            </strong>{" "}
            <span className="soft">{words.now.counts(nodes.alive, nodes.ready, workers.alive)}</span>
          </p>
          {reasons.length === 0 ? null : (
            <ul className="stack">
              {reasons.map((reason) => (
                <Reason key={`${reason.code} ${reason.queue} ${reason.type}`} reason={reason} />
              ))}
            </ul>
          )}
        </div>
      )}
    </Loaded>
  );
}

function Reason({ reason: { message, remedy, since } }: { reason: StatusReason }) {
  return (
    <li>
      {message}{" "}
      {since === undefined ? null : (
        <span className="soft">
          <Relative at={since} />
        </span>
      )}
      <br />
      <span className="soft">{remedy}</span>
    </li>
  );
}

function Failing() {
  const tasks = useGet<{ tasks: Task[] }>("/tasks", { outcome: FAILED, limit: SHOWN });
  return (
    <Panel title={words.now.failing} end={<Link href="/tasks?filter=failing">{words.more}</Link>}>
      <Loaded of={tasks}>
        {({ tasks }) =>
          tasks.length === 0 ? (
            <Empty>{words.now.noneFailing}</Empty>
          ) : (
            <ul className="rows">
              {tasks.map((task) => (
                <li key={taskPath(task)}>
                  <Link href={taskPath(task)} data-row>
                    {shortName(task)}
                  </Link>
                  {task.lastStatus?.outcome ? <OutcomeBadge outcome={task.lastStatus.outcome} /> : null}
                  {task.lastStatus?.finishedAt === undefined ? null : (
                    <span className="end soft">
                      <Relative at={task.lastStatus.finishedAt} />
                    </span>
                  )}
                  {task.lastStatus?.error ? (
                    <Link href={runPath(task.lastStatus.run)} className="wide small soft cut">
                      {task.lastStatus.error}
                    </Link>
                  ) : null}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Running() {
  const runs = useGet<{ runs: Run[] }>("/runs", { state: "running", limit: SHOWN });
  return (
    <Panel title={words.now.running} end={<Link href="/runs">{words.more}</Link>}>
      <Loaded of={runs}>
        {({ runs }) =>
          runs.length === 0 ? (
            <Empty>{words.now.noneRunning}</Empty>
          ) : (
            <ul className="rows">
              {runs.map((run) => (
                <li key={run.id}>
                  <Link href={runPath(run.id)} data-row>
                    {shortName(run.task)}
                  </Link>
                  <span className="soft small">{run.host ?? run.worker}</span>
                  <span className="end soft">
                    <Relative at={run.started ?? run.enqueued} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Next() {
  const upcoming = useGet<{ upcoming: Upcoming[] }>("/upcoming", { limit: SHOWN });
  return (
    <Panel title={words.now.next} end={<Link href="/tasks?sort=next">{words.more}</Link>}>
      <Loaded of={upcoming}>
        {({ upcoming }) =>
          upcoming.length === 0 ? (
            <Empty>{words.now.noneNext}</Empty>
          ) : (
            <ul className="rows">
              {upcoming.map(({ task, due }) => (
                <li key={taskPath(task)}>
                  <Link href={taskPath(task)} data-row>
                    {shortName(task)}
                  </Link>
                  <span className="end soft">
                    <Relative at={due} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Paused() {
  const tasks = useGet<{ tasks: Task[] }>("/tasks", { state: "paused", limit: SHOWN });
  return (
    <Panel title={words.now.paused} end={<Link href="/tasks?filter=paused">{words.more}</Link>}>
      <Loaded of={tasks}>
        {({ tasks }) =>
          tasks.length === 0 ? (
            <Empty>{words.now.nonePaused}</Empty>
          ) : (
            <ul className="rows">
              {tasks.map((task) => (
                <li key={taskPath(task)}>
                  <Link href={taskPath(task)} data-row>
                    {shortName(task)}
                  </Link>
                  {task.paused?.by ? (
                    <span className="soft">{words.now.pausedBy(task.paused.by)}</span>
                  ) : null}
                  {task.paused ? (
                    <span className="end soft">
                      <Relative at={task.paused.at} />
                    </span>
                  ) : null}
                  {task.paused?.note ? <span className="wide small any">{task.paused.note}</span> : null}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Queues() {
  const queues = useGet<{ queues: QueueView[] }>("/queues");
  return (
    <Panel title={words.now.queues} end={<Link href="/system">{words.more}</Link>}>
      <Loaded of={queues}>
        {({ queues }) =>
          queues.length === 0 ? (
            <Empty>{words.now.noQueues}</Empty>
          ) : (
            <ul className="rows">
              {queues.slice(0, SHOWN).map(({ name, paused, waiting = 0, active = 0, oldestWaitingMs }) => (
                <li key={name}>
                  <Link href={`/tasks?queue=${encodeURIComponent(name)}`} data-row>
                    {name}
                  </Link>
                  {paused ? <Badge tone="warn">{words.now.queuePaused}</Badge> : null}
                  <span className="end soft">
                    {words.now.waiting(waiting)}, {words.now.active(active)}
                    {oldestWaitingMs === undefined ? "" : `, ${words.now.oldest(duration(oldestWaitingMs))}`}
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}
