import type { AnswerTo } from "@carillon/ops";
import type { AlertKind } from "@carillon/sdk/internal";
import { Link, useLocation, useSearchParams } from "wouter";
import { call, runPath, shortName, taskPath } from "../lib/api.js";
import { labelOf, useMay } from "../lib/forms.js";
import { useAct, useCall, usePages } from "../lib/query.js";
import { AskButton } from "../parts/ask.js";
import { Button } from "../parts/button.js";
import { Select } from "../parts/confirm.js";
import { notify } from "../parts/notices.js";
import { Empty, Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { Badge, type Tone } from "../parts/state.js";
import { Prose, Relative, Time } from "../parts/time.js";
import { words } from "../words.js";

const w = words.alerts;
type Undelivered = AnswerTo<"alerts.undelivered">;
type Silence = AnswerTo<"silences.list">["silences"][number];
const TONES: Record<Undelivered["deliveries"][number]["state"], Tone> = {
  collecting: "none",
  waiting: "warn",
  failed: "bad",
};

/** Delivered alerts, undelivered ones, and silences. */
export default function Alerts() {
  const [, navigate] = useLocation();
  const undelivered = useCall("alerts.undelivered", {});
  return (
    <>
      <PageHead title={w.title}>
        <AskButton
          text={w.test}
          title="Test a destination"
          act={w.test}
          does="alerts.test"
          fields={["target", "format"]}
          looks={{ format: { choices: { "": "by the address", ...w.formats } } }}
          says="The test is on its way."
          onDone={({ run }) => navigate(runPath(run))}
        >
          <p>Sends one alert. The outcome of its run tells whether it arrived.</p>
        </AskButton>
        <AskButton
          text={w.silence}
          title="Silence alerts"
          act={w.silence}
          does="silences.put"
          scopes={["task", "owner", "queue", "kind", "cause", "all"]}
          within={{ task: "owner" }}
          fields={["until", "note"]}
          looks={{
            kind: { first: "failed", choices: w.kinds },
            all: { label: w.all },
            until: { hint: w.untilHint },
          }}
          says="The silence holds."
        >
          <p>Until its end, alerts that match are recorded and not sent.</p>
        </AskButton>
      </PageHead>
      <div className="stack">
        <Panel title="Not delivered">
          <Loaded of={undelivered}>{(waiting) => <Waiting of={waiting} />}</Loaded>
        </Panel>
        <Records
          title="Silences"
          list="silences.list"
          of={({ silences }) => silences}
          name={({ id }) => id}
          columns={[
            silenceText,
            ({ until, untilGone, by }) => (
              <span className="soft">
                {words.task.until} <Time at={until} /> (<Relative at={until} />){untilGone ? w.orLater : ""}
                {by === undefined ? "" : ` · ${by}`}
              </span>
            ),
            ({ id }) => <End id={id} />,
            ({ note }) => note && <span className="wide any">{note}</span>,
          ]}
          none="Nothing is silenced."
        />
        <Log />
      </div>
    </>
  );
}

function silenceText({ all, ...silence }: Silence): string {
  const scopes = (["owner", "task", "queue", "kind", "cause"] as const).filter(
    (name) => silence[name] !== undefined,
  );
  const text = (name: (typeof scopes)[number]) =>
    name === "kind" ? kindText(String(silence.kind)) : silence[name];
  return all ? w.all : scopes.map((name) => `${labelOf(name)} ${text(name)}`).join(", ");
}

function End({ id }: { id: string }) {
  const end = useAct(() => call("silences.delete", { id }), {
    onDone: () => notify("ok", "The silence has ended."),
  });
  return useMay("silences.delete") ? (
    <Button look="end" onClick={() => end.mutate(undefined)}>
      End
    </Button>
  ) : null;
}

/** Alerts that wait for a node, and deliveries that wait for a worker or failed. */
function Waiting({ of: { alerts, deliveries } }: { of: Undelivered }) {
  if (alerts.length + deliveries.length === 0) return <Empty>Nothing waits.</Empty>;
  return (
    <ul className="rows">
      {deliveries.map(({ id, owner, to, state, at, kinds, error }) => (
        <li key={`${owner}/${id}`}>
          <Badge tone={TONES[state]}>{w.states[state]}</Badge>
          <span className="any">{to}</span>
          <span className="soft">{`alerts: ${kinds.map(kindText).join(", ")}`}</span>
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

/** The last alerts, newest first. */
function Log() {
  const [params, setParams] = useSearchParams();
  const kind = params.get("kind") ?? "";
  const pages = usePages("alerts.list", { kind: (kind || undefined) as AlertKind | undefined, limit: 50 });
  return (
    <Panel
      title="History"
      end={
        // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
        <label className="inline">
          <span>{w.kind}</span>
          <Select
            value={kind as AlertKind | ""}
            options={{ "": words.all, ...w.kinds }}
            onSet={(to) => setParams(to === "" ? {} : { kind: to })}
          />
        </label>
      }
    >
      <Loaded of={pages}>
        {({ pages: read }) => (
          <>
            {read[0]?.alerts.length &&
            read.every(({ alerts }) => alerts.every(({ to }) => to.length === 0)) ? (
              <p className="note">No address is set: alerts go to programs that listen.</p>
            ) : null}
            <Rows of={read.flatMap(({ alerts }) => alerts)} none="No alert matches.">
              {(alert, i) => (
                <li key={`${alert.recorded} ${i}`}>
                  <About alert={alert} />
                  {alert.silenced !== undefined ? (
                    <span className="wide soft">Not sent: silenced.</span>
                  ) : alert.to.length > 0 ? (
                    <span className="wide soft any">{`To ${alert.to.join(", ")}.`}</span>
                  ) : null}
                </li>
              )}
            </Rows>
            <More of={pages}>Older alerts</More>
          </>
        )}
      </Loaded>
    </Panel>
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
      <Badge tone={kind === "recovered" ? "ok" : "bad"}>{kindText(kind)}</Badge>
      {task === undefined ? (
        <span className="any">{queue === undefined ? "all tasks" : `Queue ${queue}`}</span>
      ) : (
        <Link href={taskPath(task)} className="any" data-row>
          {shortName(task)}
        </Link>
      )}
      {ended === undefined ? null : <span className="soft">{`ends: ${ended.map(kindText).join(", ")}`}</span>}
      {run === undefined ? null : <Link href={runPath(run)}>Run</Link>}
      <span className="end soft">
        <Relative at={at} /> · <Time at={at} />
      </span>
      {text === undefined ? null : (
        <span className={error === undefined ? "wide any sentence" : "wide any"}>
          <Prose of={text} />
        </span>
      )}
    </>
  );
}

/** A newer version may have kinds that this one does not know. */
function kindText(kind: string): string {
  return (w.kinds as Record<string, string>)[kind] ?? kind;
}
