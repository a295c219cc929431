import { duration, traceLink } from "@carillon/ops/words";
import type { RunDetails } from "@carillon/sdk";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { call, ROOT, refOf, runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useAct, useCall } from "../lib/query.js";
import { tookText, useNow } from "../lib/time.js";
import { Acts } from "../parts/acts.js";
import { Ask } from "../parts/ask.js";
import { notify } from "../parts/notices.js";
import { ErrorText, Loaded, PageHead, Panel } from "../parts/page.js";
import { Badge, RunBadge, toneOf } from "../parts/state.js";
import { Time } from "../parts/time.js";
import { Compared } from "./run-compare.js";
import { Items } from "./run-items.js";
import "./run.css";
import { nameOf } from "../words.js";

/** Interval in ms at which an open run is read. */
const LIVE_MS = 1_000;

/** One run: its attempts on a line of time, its output as it is written, and its end. */
export default function RunPage({ params }: PageProps) {
  // The router decodes no `%40`, which some programs make of the address.
  const id = params["id"]!.replace("%40", "@");
  const run = useCall("runs.get", { id });
  const open = run.data !== undefined && run.data.state !== "final";
  useCall("runs.get", open ? { id } : undefined, { refresh: LIVE_MS });
  const task = useCall("tasks.get", run.data && refOf(run.data.task));
  return (
    <Loaded of={run} title={`Run of ${id.replace(/@.*/, "")}`}>
      {(run) => (
        <>
          <PageHead title={`Run of ${shortName(run.task)}`} badge={<RunBadge run={run} />}>
            <Buttons run={run} />
          </PageHead>
          <div className="stack">
            <Facts run={run} own={task.data?.timezone} />
            <Panel title="Course">
              <div className="body">
                <Waterfall run={run} />
              </div>
            </Panel>
            {run.error === undefined ? null : (
              <Panel title={toneOf(run.outcome) === "ok" ? "Error of an attempt before" : "Error"}>
                <div className="body">
                  <ErrorText text={run.error} />
                </div>
              </Panel>
            )}
            <Items run={run} />
            {run.state === "final" ? <Compared id={id} /> : null}
            <Output run={run} />
            {(["payload", "result"] as const).map((name) =>
              run[name] === undefined ? null : (
                <Panel key={name} title={name === "payload" ? "Its own payload, not the task's" : "Result"}>
                  <div className="body">
                    <pre>{JSON.stringify(run[name], null, 2)}</pre>
                  </div>
                </Panel>
              ),
            )}
          </div>
        </>
      )}
    </Loaded>
  );
}

function Buttons({ run }: { run: RunDetails }) {
  const { act, bullBoard, traceUrl } = useMe();
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  const cancel = useAct(() => call("runs.cancel", { id: run.id }), {
    onDone: ({ changed }) =>
      notify("ok", changed ? "The run was asked to end." : "It was asked to end before."),
  });
  const job = `${ROOT}${bullBoard}queue/${encodeURIComponent(run.task.queue)}/${encodeURIComponent(run.id)}`;
  const trace = traceLink(traceUrl, run);
  const isFinal = run.state === "final";
  return (
    <>
      <Acts
        of={[
          act && isFinal && { text: "Run again", does: () => setAsking(true), key: "r" },
          act &&
            !isFinal &&
            run.cancel === undefined && {
              text: "Cancel",
              does: () => cancel.mutate(undefined),
              danger: true,
            },
          { text: "Why?", does: `${taskPath(run.task)}?explain=${run.nominal}` },
          bullBoard !== undefined && { text: "Its job in Bull Board", does: job, window: "_self" },
          trace !== undefined && { text: "Its trace", does: trace, window: "_blank" },
        ]}
      />
      {isAsking ? (
        <Ask
          title={`Run ${shortName(run.task)} again`}
          act="Run again"
          does="runs.replay"
          given={{ id: run.id }}
          fields={[]}
          onDone={(done) =>
            done.outcome === "queued"
              ? notify("ok", "It starts when the run in its way is over.")
              : navigate(runPath(done.run))
          }
          onClose={() => setAsking(false)}
        >
          <p>
            {run.payload === undefined
              ? "The task runs now, as it is defined now."
              : "The task runs now, with the payload that this run had."}
          </p>
        </Ask>
      ) : null}
    </>
  );
}

function Facts({ run, own }: { run: RunDetails; own: string | undefined }) {
  const facts: [string, React.ReactNode][] = [
    [
      "Task",
      <Link key="t" href={taskPath(run.task)}>
        {shortName(run.task)}
      </Link>,
    ],
    ["Planned for", <Time key="n" at={run.nominal} own={own} />],
    ["Cause", nameOf(run.trigger) + (run.by === undefined ? "" : ` by ${run.by}`)],
    ["Attempts", `${run.attempts}${run.maxAttempts === undefined ? "" : ` / ${run.maxAttempts}`}`],
    ["Worker", run.worker === undefined ? undefined : `${run.host ?? ""} ${run.worker} (${run.pid})`],
    ["Late by", run.lateMs === undefined ? undefined : duration(run.lateMs)],
    ["Waited", run.waitMs === undefined ? undefined : duration(run.waitMs)],
    ["Started", run.started === undefined ? undefined : <Time key="s" at={run.started} />],
    ["Ended", run.finished === undefined ? undefined : <Time key="e" at={run.finished} />],
    ["Took", tookText(run)],
    ["Crashes", run.crashes],
    ["Cancel", run.cancel === undefined ? undefined : `asked by ${run.cancel.by}`],
  ];
  return (
    <section className="panel">
      <dl className="facts body">
        {facts.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      <details className="body small soft">
        <summary>Details</summary>
        <p className="any">
          Id <code>{run.id}</code>
          {run.node === undefined ? "" : `, enqueued by ${run.node}`}
        </p>
      </details>
    </section>
  );
}

interface Phase {
  readonly name: string;
  readonly kind: "late" | "wait" | "run";
  readonly from: number;
  readonly to: number;
}

/** Phases of the run (due, enqueued, waited, ran, waited for the next attempt) as bars on one scale. */
function Waterfall({ run }: { run: RunDetails }) {
  const now = useNow();
  const end = run.finished ?? Math.max(now, run.started ?? run.enqueued);
  const attempts = run.attemptList.flatMap(({ attempt, started, ended, host }, i): Phase[] => {
    const next = run.attemptList[i + 1]?.started;
    const died = ended === undefined && next !== undefined;
    const name = `Attempt ${attempt}${died ? ", then a wait" : ""} · ${host}`;
    const ran: Phase = { name, kind: "run", from: started, to: ended ?? next ?? end };
    return ended === undefined
      ? [ran]
      : [ran, { name: "waited for the next attempt", kind: "wait", from: ended, to: next ?? end }];
  });
  const first = attempts[0]?.from ?? end;
  const late = run.lateMs ?? 0;
  const phases: Phase[] = [
    { name: "due, then enqueued", kind: "late", from: run.enqueued - late, to: run.enqueued },
    { name: "waited for a worker", kind: "wait", from: run.enqueued, to: Math.max(run.enqueued, first) },
    ...attempts,
  ];
  const from = Math.min(...phases.map((phase) => phase.from));
  const length = Math.max(1, Math.max(...phases.map((phase) => phase.to)) - from);
  return (
    <ol className="waterfall">
      {phases.map(({ name, kind, from: begun, to }) => (
        <li key={`${name} ${begun}`}>
          <span className="cut">{name}</span>
          <svg aria-hidden="true" viewBox="0 0 1000 12" preserveAspectRatio="none">
            <rect
              data-kind={kind}
              x={((begun - from) / length) * 1_000}
              width={Math.max(2, ((to - begun) / length) * 1_000)}
              height="12"
            />
          </svg>
          <span className="soft right">{duration(to - begun)}</span>
        </li>
      ))}
    </ol>
  );
}

/** Output of the attempts; follows the end while the run is open. */
function Output({ run }: { run: RunDetails }) {
  const end = useRef<HTMLPreElement>(null);
  const text = run.output.map(({ text }) => text).join("");
  const open = run.state !== "final";
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when there is more text
  useEffect(() => {
    const shown = end.current;
    if (open && shown) shown.scrollTop = shown.scrollHeight;
  }, [text, open]);
  if (run.output.length === 0 && !open) return null;
  return (
    <Panel title="Output" end={open ? <Badge tone="run">live</Badge> : undefined}>
      <div className="body stack">
        {run.output.length === 0 ? (
          <p className="soft">It has printed nothing so far; output is saved every 5 seconds.</p>
        ) : null}
        {run.output.map(({ attempt, text, cut }, i) => (
          <div key={attempt} className="stack">
            {run.output.length > 1 ? <h3>{`Attempt ${attempt}`}</h3> : null}
            {cut ? <p className="soft small">Only the newest part is kept.</p> : null}
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long output is scrolled with the keyboard */}
            <pre className="output" tabIndex={0} ref={i === run.output.length - 1 ? end : undefined}>
              {text}
            </pre>
          </div>
        ))}
      </div>
    </Panel>
  );
}
