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
import { words } from "../words.js";
import { Findings } from "./findings.js";

const w = words.system;
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
      <PageHead title={w.title} />
      <div className="stack">
        <Findings />
        <Panel title={w.nodes}>
          <Loaded of={nodes}>{({ nodes }) => <Nodes nodes={nodes} />}</Loaded>
        </Panel>
        <Panel title={w.workers}>
          <Loaded of={workers}>{({ workers }) => <Workers workers={workers} />}</Loaded>
        </Panel>
        <Panel title={words.now.queues}>
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
    <Scroll label={w.nodes}>
      <table className="plain">
        <TableHead of={w.nodeColumns} />
        <tbody>
          {nodes.map(({ id, host, pid, state, version, tzdata, clockOffset, beat, started, ...node }) => (
            <tr key={`${id} ${started}`}>
              <td>
                <strong className="nowrap">{id}</strong>
                <span className="block soft small nowrap">
                  {host} · {pid}
                </span>
              </td>
              <td>
                <Badge tone={TONES[state]}>{w.states[state]}</Badge>
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

function Workers({ workers }: { workers: readonly WorkerView[] }) {
  if (workers.length === 0)
    return <Empty>No worker of the SDK runs. Plain BullMQ workers are counted at the queues.</Empty>;
  return (
    <Scroll label={w.workers}>
      <table className="plain">
        <TableHead of={w.workerColumns} />
        <tbody>
          {workers.map(({ id, host, pid, state, queues, types, versions, beat, running }) => (
            <tr key={id}>
              <td>
                <strong className="nowrap">{id}</strong>
                <span className="block soft small nowrap">
                  {host} · {pid}
                </span>
              </td>
              <td>
                <Badge tone={TONES[state]}>{w.states[state]}</Badge>
              </td>
              <td>
                <Relative at={beat} />
              </td>
              <td>{running ?? words.none}</td>
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
  if (queues.length === 0) return <Empty>{words.now.noQueues}</Empty>;
  return (
    <Scroll label={words.now.queues}>
      <table className="plain">
        <TableHead of={act ? [...w.queueColumns, "Actions"] : w.queueColumns} />
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
              <td>{waiting ?? words.none}</td>
              <td>{active ?? words.none}</td>
              <td>{limit === undefined ? words.none : limitText(limit)}</td>
              <td>{oldestWaitingMs === undefined ? words.none : duration(oldestWaitingMs)}</td>
              <td>{workers ?? words.none}</td>
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
                      text={words.task.pause}
                      title={words.task.pauseTitle(name)}
                      act={words.task.pause}
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
