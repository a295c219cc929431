import type { AnswerTo } from "@carillon/ops";
import type { AlertFormat } from "@carillon/sdk/internal";
import { Link, useLocation } from "wouter";
import { runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { AskButton } from "../parts/ask.js";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { Badge, type Tone } from "../parts/state.js";
import { Prose, Relative, Time } from "../parts/time.js";
import { nameOf } from "../words.js";

type Undelivered = AnswerTo<"alerts.undelivered">;
const TONES: Record<Undelivered["deliveries"][number]["state"], Tone> = {
  collecting: "none",
  waiting: "warn",
  failed: "bad",
};

const STATES = { collecting: "collected", waiting: "waits", failed: "failed" };
const FORMATS: Record<AlertFormat, string> = {
  json: "JSON",
  slack: "Slack",
  teams: "Microsoft Teams",
  pagerduty: "PagerDuty",
  template: "JSON of your own",
  email: "E-mail",
};

/** Destinations of alerts, and alerts that were not delivered. */
export default function Alerts() {
  const [, navigate] = useLocation();
  const { wide } = useMe();
  const undelivered = useCall("alerts.undelivered", {});
  return (
    <>
      <PageHead title="Alerts">
        <AskButton
          text="Test"
          title="Test a destination"
          act="Test"
          does="alerts.test"
          fields={["target", "format"]}
          looks={{ format: { choices: { "": "by the address", ...FORMATS } } }}
          says="The test is on its way."
          onDone={({ run }) => navigate(runPath(run))}
        >
          <p>Sends one alert. The outcome of its run tells whether it arrived.</p>
        </AskButton>
      </PageHead>
      <div className="stack">
        {wide ? <Destinations /> : null}
        <Panel title="Not delivered">
          <Loaded of={undelivered}>{(waiting) => <Waiting of={waiting} />}</Loaded>
        </Panel>
      </div>
    </>
  );
}

/** Destinations of the alerts of all tasks, of an owner or of a type. */
function Destinations() {
  return (
    <Records
      title="Destinations"
      end={<Link href="/settings/rules">Set them with the default policies</Link>}
      list="defaults.list"
      of={({ defaults }) =>
        Object.entries(defaults).flatMap(([scope, policies]) =>
          (policies?.alerts ?? []).map((alert) => [scope, alert] as const),
        )
      }
      name={([scope, alert]) => `${scope} ${JSON.stringify(alert)}`}
      columns={[
        ([scope]) => scope,
        ([, { on }]) => `on ${on.map(nameOf).join(", ")}`,
        ([, { on: _, ...to }]) => <code className="end any">{JSON.stringify(to)}</code>,
      ]}
      none="The defaults name none. A task may name its own; programs that listen get all."
    />
  );
}

/** Alerts that wait for a node, and deliveries that wait for a worker or failed. */
function Waiting({ of: { alerts, deliveries } }: { of: Undelivered }) {
  if (alerts.length + deliveries.length === 0) return <Empty>Nothing waits.</Empty>;
  return (
    <ul className="rows">
      {deliveries.map(({ id, owner, to, state, at, kinds, error }) => (
        <li key={`${owner}/${id}`}>
          <Badge tone={TONES[state]}>{STATES[state]}</Badge>
          <span className="any">{to}</span>
          <span className="soft">{`alerts: ${kinds.map(nameOf).join(", ")}`}</span>
          <span className="end soft">
            <Relative at={at} />
          </span>
          {error === undefined ? null : <span className="wide any">{error}</span>}
        </li>
      ))}
      {alerts.map((alert, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an alert has no id
        <li key={`${alert.at} ${i}`}>
          <Badge tone="warn">waits for a node</Badge>
          <About alert={alert} />
        </li>
      ))}
    </ul>
  );
}

function About({
  alert: { kind, task, queue, run, at, error, message, ended },
}: {
  alert: Undelivered["alerts"][number];
}) {
  // The page of the run shows the whole error.
  const text = (error ?? message)?.split("\n", 1)[0];
  return (
    <>
      <Badge tone={kind === "recovered" ? "ok" : "bad"}>{nameOf(kind)}</Badge>
      {task === undefined ? (
        <span className="any">{queue === undefined ? "all tasks" : `queue ${queue}`}</span>
      ) : (
        <Link href={taskPath(task)} className="any" data-row>
          {shortName(task)}
        </Link>
      )}
      {ended === undefined ? null : <span className="soft">{`ends: ${ended.map(nameOf).join(", ")}`}</span>}
      {run === undefined ? null : <Link href={runPath(run)}>Run</Link>}
      <span className="end soft">
        <Relative at={at} /> · <Time at={at} />
      </span>
      {text === undefined ? null : (
        <span className="wide any">
          <Prose of={text} />
        </span>
      )}
    </>
  );
}
