import type { AnswerTo } from "@carillon/ops";
import type { AlertKind } from "@carillon/sdk/internal";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { call, runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall, usePages } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Select } from "../parts/confirm.js";
import { notify } from "../parts/notices.js";
import { Empty, Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { Prose, Relative, Time } from "../parts/time.js";
import { words } from "../words.js";
import { NewSilence, silenceText, TestAlert } from "./alerts-dialogs.js";

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
  const { act } = useMe();
  const silences = useCall("silences.list", {});
  const undelivered = useCall("alerts.undelivered", {});
  const [dialog, setDialog] = useState<"silence" | "test" | undefined>();
  const close = () => setDialog(undefined);
  return (
    <>
      <PageHead title={w.title}>
        {act ? (
          <>
            <Button onClick={() => setDialog("test")}>{w.test}</Button>
            <Button onClick={() => setDialog("silence")}>{w.silence}</Button>
          </>
        ) : null}
      </PageHead>
      <div className="stack">
        <Panel title="Not delivered">
          <Loaded of={undelivered}>{(waiting) => <Waiting of={waiting} />}</Loaded>
        </Panel>
        <Panel title="Silences">
          <Loaded of={silences}>{({ silences }) => <Silences silences={silences} />}</Loaded>
        </Panel>
        <Log />
      </div>
      {dialog === "silence" ? <NewSilence onClose={close} /> : null}
      {dialog === "test" ? <TestAlert onClose={close} /> : null}
    </>
  );
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

function Silences({ silences }: { silences: readonly Silence[] }) {
  const { act } = useMe();
  const end = useAct((id: string) => call("silences.delete", { id }), {
    onDone: () => notify("ok", "The silence has ended."),
  });
  return (
    <Rows of={silences} none="Nothing is silenced.">
      {(silence) => (
        <li key={silence.id}>
          <strong className="any">{silenceText(silence)}</strong>
          <span className="soft">
            {words.task.until} <Time at={silence.until} /> (<Relative at={silence.until} />)
            {silence.by === undefined ? "" : ` · ${silence.by}`}
          </span>
          {act ? (
            <Button look="end" onClick={() => end.mutate(silence.id)}>
              End
            </Button>
          ) : null}
          {silence.note === undefined ? null : <span className="wide any">{silence.note}</span>}
        </li>
      )}
    </Rows>
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
        <span className="any">{queue === undefined ? "all tasks" : `${w.scopes.queue} ${queue}`}</span>
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
