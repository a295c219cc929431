import type { AnswerTo } from "@carillon/ops";
import { duration, limitText, silenceText } from "@carillon/ops/words";
import { Link } from "wouter";
import { ROOT } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { AskButton } from "../parts/ask.js";
import { Empty, Loaded, PageHead, Panel, Scroll, TableHead } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { Relative } from "../parts/time.js";
import { nameOf } from "../words.js";
import { Findings } from "./findings.js";

type NodeView = AnswerTo<"nodes.list">["nodes"][number];
type WorkerView = AnswerTo<"workers.list">["workers"][number];
type QueueView = AnswerTo<"queues.list">["queues"][number];
/** The queue of alerts, which cannot be paused. */
const ALERTS = "carillon-alerts";
const TONES: Record<(NodeView | WorkerView)["state"], Tone> = {
  ...{ ready: "ok", "not-ready": "warn", stopping: "warn", silent: "bad", dead: "bad" },
};

/** Faults, nodes and workers alive, and the jobs that wait. */
export default function System() {
  const nodes = useCall("nodes.list", {});
  const workers = useCall("workers.list", {});
  const queues = useCall("queues.list", {});
  return (
    <>
      <PageHead title="System" />
      <div className="stack">
        <Findings />
        <Panel title="Nodes">
          <Loaded of={nodes}>{({ nodes }) => <Nodes nodes={nodes} />}</Loaded>
        </Panel>
        <Panel title="Workers">
          <Loaded of={workers}>{({ workers }) => <Workers workers={workers} />}</Loaded>
        </Panel>
        <Panel title="Queues">
          <Loaded of={queues}>{({ queues }) => <Queues queues={queues} />}</Loaded>
        </Panel>
      </div>
    </>
  );
}

function Nodes({ nodes }: { nodes: readonly NodeView[] }) {
  if (nodes.length === 0)
    return <Empty>No node runs: nothing is scheduled. Start one with carillon-scheduler.</Empty>;
  return (
    <Scroll label="Nodes">
      <table className="plain">
        <TableHead of={["Node", "State", "Heartbeat", "Started", "Version", "Time zones", "Clock"]} />
        <tbody>
          {nodes.map(({ id, host, pid, state, version, tzdata, clockOffset, beat, started, ...node }) => (
            <tr key={`${id} ${started}`}>
              <Process id={id} host={host} pid={pid} />
              <td>
                <Badge tone={TONES[state]}>{nameOf(state)}</Badge>
                {silenceText(node) ? <span className="block small">{silenceText(node)}</span> : null}
              </td>
              <td>
                <Relative at={beat} />
              </td>
              <td>
                <Relative at={started} />
              </td>
              <td>{version}</td>
              <td>{tzdata}</td>
              <td className="nowrap">{`${clockOffset > 0 ? "+" : clockOffset < 0 ? "−" : ""}${Math.abs(clockOffset)} ms`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Process({ id, host, pid }: Pick<NodeView, "id" | "host" | "pid">) {
  return (
    <td>
      <strong className="nowrap">{id}</strong>
      <span className="block soft small nowrap">
        {host} · {pid}
      </span>
    </td>
  );
}

function Workers({ workers }: { workers: readonly WorkerView[] }) {
  if (workers.length === 0)
    return <Empty>No worker of the SDK runs. Plain BullMQ workers are counted at the queues.</Empty>;
  return (
    <Scroll label="Workers">
      <table className="plain">
        <TableHead of={["Worker", "State", "Heartbeat", "Running", "Queues", "Types", "Versions"]} />
        <tbody>
          {workers.map(({ id, host, pid, state, queues, types, versions, beat, running }) => (
            <tr key={id}>
              <Process id={id} host={host} pid={pid} />
              <td>
                <Badge tone={TONES[state]}>{nameOf(state)}</Badge>
              </td>
              <td>
                <Relative at={beat} />
              </td>
              <td>{running ?? "–"}</td>
              <td className="any list">{queues.join(", ")}</td>
              <td className="any list">{types.join(", ")}</td>
              <td>
                {versions.carillon}
                <span className="block soft small nowrap">
                  bullmq {versions.bullmq}, node {versions.node}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Queues({ queues }: { queues: readonly QueueView[] }) {
  const { act, bullBoard } = useMe();
  if (queues.length === 0) return <Empty>There is no queue yet: put a task.</Empty>;
  return (
    <Scroll label="Queues">
      <table className="plain">
        <TableHead
          of={[
            "Queue",
            "Tasks",
            "Waiting",
            "Active",
            "Limit",
            "Oldest waits",
            "Workers",
            "Jobs",
            ...(act ? ["Actions"] : []),
          ]}
        />
        <tbody>
          {queues.map(({ name, tasks, paused, waiting, active, limit, workers, oldestWaitingMs }) => (
            <tr key={name}>
              <td>
                <Link href={`/tasks?queue=${encodeURIComponent(name)}`} data-row>
                  {name}
                </Link>
                {paused === undefined ? null : (
                  <Link href="/held" className="block small">
                    <Badge tone="warn">paused</Badge>
                  </Link>
                )}
              </td>
              <td>{tasks.toLocaleString("en")}</td>
              <td>{waiting ?? "–"}</td>
              <td>{active ?? "–"}</td>
              <td>{limit === undefined ? "–" : limitText(limit)}</td>
              <td>{oldestWaitingMs === undefined ? "–" : duration(oldestWaitingMs)}</td>
              <td>{workers ?? "–"}</td>
              <td>
                {bullBoard === undefined ? null : (
                  <a className="nowrap" href={`${ROOT}${bullBoard}queue/${encodeURIComponent(name)}`}>
                    Bull Board
                  </a>
                )}
              </td>
              {act ? (
                <td>
                  {name === ALERTS || paused !== undefined ? null : (
                    <AskButton
                      text="Pause"
                      title={`Pause ${name}`}
                      act="Pause"
                      does="queues.pause"
                      given={{ queue: name }}
                    >
                      <p>Workers take no more jobs from it. Scheduling goes on, and runs wait.</p>
                    </AskButton>
                  )}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
