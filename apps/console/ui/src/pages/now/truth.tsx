import type { AnswerTo } from "@carillon/ops";
import { countText, covers, duration, reasonText, remedyText, sentence } from "@carillon/ops/words";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useMe } from "../../lib/me.js";
import { useCall } from "../../lib/query.js";
import { useVoice } from "../../lib/time.js";
import { Empty, Loaded, Panel } from "../../parts/page.js";
import { Badge, type Tone } from "../../parts/state.js";
import { Relative } from "../../parts/time.js";

type Status = AnswerTo<"health.status">;
type StatusReason = Status["reasons"][number];
type Finding = AnswerTo<"health.doctor">["findings"][number];
type Code = StatusReason["code"];

const OFTEN = 10_000;
const TONES: Record<Status["state"], Tone> = { "on-time": "ok", behind: "warn", stopped: "bad" };

/** Page on which each reason can be fixed, and its name in the remedy; the others are fixed outside of the console. */
const PLACES: Partial<Record<Code, readonly [place: string, name: string]>> = {
  NO_NODE: ["/system", "Nodes"],
  NODES_NOT_READY: ["/system", "System"],
  QUEUE_PAUSED: ["/held", "Held"],
  NO_WORKER: ["/system", "Workers"],
  JOBS_NOT_TAKEN: ["/system", "Workers"],
  FROZEN: ["/held", "Held"],
  ALERTS_UNDELIVERED: ["/settings/alerts", "Alerts"],
  ALERTS_FAIL: ["/settings/alerts", "alerts in the settings"],
  RUNS_FAIL: ["/errors", "Errors"],
  OVERDUE: ["/tasks?filter=overdue", "overdue tasks"],
  JOBS_WAIT: ["/runs", "Runs"],
  JOBS_LIMITED: ["/system", "Queues"],
};

/** The consequences of a cause, in its queue or in all. */
const SYMPTOMS: Partial<Record<Finding["code"], readonly Finding["code"][]>> = {
  NO_NODE: ["OVERDUE", "NEVER_RAN"],
  NODES_NOT_READY: ["OVERDUE", "NEVER_RAN", "NODE_NOT_READY"],
  CLOCK_WENT_BACK: ["OVERDUE"],
  FROZEN: ["NEVER_RAN"],
  QUEUE_PAUSED: ["JOBS_NOT_TAKEN", "JOBS_WAIT"],
  NO_WORKER: ["JOBS_NOT_TAKEN", "JOBS_WAIT", "ALERTS_UNDELIVERED"],
};

/** The state in one sentence: whether work is on time, and whether it goes well. */
function stateText(state: Status["state"], behind: number, failing: number, whose: string): string {
  const fails = failing === 0 ? "" : ` ${countText(failing, "task fails", "tasks fail")}`;
  if (state === "on-time") return `Everything${whose} is on time${fails && `, but${fails}`}`;
  const late = state === "behind" ? `Behind by ${duration(behind)}` : `Some work${whose} stands still`;
  return `${late}${fails && `, and${fails}`}`;
}

/**
 * Whether work is on time and goes well, with the first cause if not, and what somebody holds on purpose. Of the reader's owner, if the
 * token is bound to one. Before the first task: what is needed for one.
 */
export function Truth() {
  const status = useCall("health.status", {}, { every: OFTEN });
  const counts = useCall("tasks.counts", {}, { every: OFTEN }).data;
  const { owner } = useMe();
  return (
    <Loaded of={status}>
      {({ state, behind, nodes, workers, reasons, notes }) => {
        const { all, failing = 0 } = counts ?? {};
        // Anything else is an alarm even without a task.
        if (all === 0 && reasons.every(({ code }) => code === "NO_NODE"))
          return <FirstSteps nodes={nodes.ready} workers={workers.alive} />;
        const isWell = state === "on-time" && failing === 0;
        return (
          <div className="stack">
            <div
              className="note"
              data-tone={counts && (state === "on-time" && !isWell ? "bad" : TONES[state])}
            >
              <p>
                <strong>
                  {stateText(state, behind, failing, owner === undefined ? "" : ` of ${owner}`)}
                </strong>
                {"; "}
                <span className="soft">{`${nodes.ready} of ${countText(nodes.alive, "node")} ready, ${countText(workers.alive, "worker")}`}</span>{" "}
                {failing === 0 ? null : <Link href="/tasks?filter=failing">Failing tasks</Link>}
              </p>
              <Causes of={foldedOf(reasons)} look="stack" />
            </div>
            <Causes of={notes.map((cause) => ({ cause, symptoms: [] }))} look="note" />
          </div>
        );
      }}
    </Loaded>
  );
}

/** The way to the first run of an empty namespace; each step is ticked off when it is done. */
function FirstSteps({ nodes, workers }: { nodes: number; workers: number }) {
  const { wide, define, namespace, owner } = useMe();
  if (!wide)
    return <Empty>{owner === undefined ? "There is no task yet." : `${owner} has no task yet.`}</Empty>;
  const at = `{ connection, namespace: ${JSON.stringify(namespace)}`;
  const steps = [
    ["A node, which enqueues what is due", `await new Scheduler(${at} }).start()`, nodes > 0],
    [
      "A worker, which runs what is enqueued",
      `await new Worker(${at}, types: [report] }).start()`,
      workers > 0,
    ],
    ["A task", `await new Client(${at} }).putMany([acme])`, false],
  ] as const;
  return (
    <Panel title="The first run of this namespace needs">
      <ol className="rows">
        {steps.map(([text, code, isDone]) => (
          <li key={text}>
            <Badge tone={isDone ? "ok" : "none"}>{isDone ? "there" : "to do"}</Badge>
            <span>{text}</span>
            <code className="any end">{code}</code>
          </li>
        ))}
        {define ? (
          <li>
            <Link href="/tasks/new">New task</Link>
          </li>
        ) : null}
      </ol>
    </Panel>
  );
}

interface Cause<Reason> {
  readonly cause: Reason;
  readonly symptoms: Reason[];
}

/** Reasons, or findings, with those that they cause folded below them. */
export function foldedOf<Reason extends StatusReason | Finding>(reasons: readonly Reason[]): Cause<Reason>[] {
  const causes: Cause<Reason>[] = [];
  for (const reason of reasons) {
    const cause = causes.find(
      ({ cause }) =>
        SYMPTOMS[cause.code]?.includes(reason.code) &&
        (cause.queue === undefined || cause.queue === reason.queue) &&
        (cause.code !== "FROZEN" || ("task" in reason && reason.task && covers(cause.scope, reason.task))),
    );
    if (cause) cause.symptoms.push(reason);
    else causes.push({ cause: reason, symptoms: [] });
  }
  return causes;
}

function Causes({ of, look }: { of: readonly Cause<StatusReason>[]; look: string }) {
  if (of.length === 0) return null;
  return (
    <ul className={look}>
      {of.map(({ cause, symptoms }) => (
        <li key={JSON.stringify(cause)}>
          <Reason of={cause} />
          <Symptoms of={symptoms}>
            {symptoms.map((one) => (
              <p key={JSON.stringify(one)}>
                <Reason of={one} />
              </p>
            ))}
          </Symptoms>
        </li>
      ))}
    </ul>
  );
}

/** Consequences of a cause, folded; null if there are none. @param children shows each */
export function Symptoms({ of, children }: { of: readonly unknown[]; children: ReactNode }) {
  if (of.length === 0) return null;
  return (
    <details className="wide">
      <summary className="small soft">{`and what follows from it (${of.length})`}</summary>
      {children}
    </details>
  );
}

function Reason({ of }: { of: StatusReason }) {
  const { code, since } = of;
  const voice = useVoice();
  return (
    <>
      <span>{sentence(reasonText(of, voice))}</span>{" "}
      {since === undefined ? null : (
        <span className="soft">
          <Relative at={since} />
        </span>
      )}
      <br />
      <Remedy code={code} text={remedyText(of, voice)} />
    </>
  );
}

/** A remedy, with a link to the page where it is done. The link is the page's name in the text; if the text has none, it comes after it. */
export function Remedy({ code, text }: { code: Finding["code"]; text: string }) {
  const { wide } = useMe();
  const [place, name] = PLACES[code as Code] ?? [];
  if (place === undefined || name === undefined || (place === "/system" && !wide))
    return <span className="soft any">{text}</span>;
  const [before = "", ...after] = text.split(name);
  return (
    <span className="soft any">
      {before}
      {after.length === 0 ? " " : ""}
      <Link href={place}>{name}</Link>
      {after.join(name)}
    </span>
  );
}
