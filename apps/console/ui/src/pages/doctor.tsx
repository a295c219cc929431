import type { AnswerTo } from "@carillon/ops";
import { findingText } from "@carillon/ops/words";
import { Link } from "wouter";
import { shortName, taskPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { useVoice } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { words } from "../words.js";
import { counted } from "../words-count.js";

type Diagnosis = AnswerTo<"health.doctor">;
type Finding = Diagnosis["findings"][number];

const w = words.doctor;
const TONES: Record<Diagnosis["state"], Tone> = { healthy: "ok", warnings: "warn", errors: "bad" };
/** Long, because each call reads up to 2,000 tasks. */
const REFRESH_MS = 60_000;

/** Faults of the whole namespace, each with its proof and its remedy. */
export default function Doctor() {
  const doctor = useCall("health.doctor", {}, { refresh: REFRESH_MS, maxAge: 10 });
  const { data } = doctor;
  return (
    <>
      <PageHead
        title={w.title}
        badge={data === undefined ? null : <Badge tone={TONES[data.state]}>{w.states[data.state]}</Badge>}
      >
        <Button disabled={doctor.isFetching} onClick={() => void doctor.refetch()}>
          Check again
        </Button>
      </PageHead>
      <Loaded of={doctor}>
        {({ findings, tasks, skipped }) => (
          <div className="stack">
            <p className="soft">{`${tasks.read.toLocaleString("en")} of ${counted(tasks.of, "task", "tasks")} checked.`}</p>
            {findings.length === 0 ? (
              <Panel title="Findings">
                <Empty>Nothing is wrong.</Empty>
              </Panel>
            ) : null}
            {(["error", "warning"] as const).map((severity) => (
              <Findings
                key={severity}
                severity={severity}
                findings={findings.filter((one) => one.severity === severity)}
              />
            ))}
            {skipped.length === 0 ? null : (
              <Panel title="Checks that could not be made">
                <ul className="rows">
                  {skipped.map((why) => (
                    <li key={why} className="any">
                      {why}
                    </li>
                  ))}
                </ul>
              </Panel>
            )}
          </div>
        )}
      </Loaded>
    </>
  );
}

function Findings({ severity, findings }: { severity: Finding["severity"]; findings: readonly Finding[] }) {
  const voice = useVoice();
  if (findings.length === 0) return null;
  return (
    <Panel title={w.severities[severity](findings.length)}>
      <ul className="rows">
        {findings
          .map((finding) => ({ ...finding, ...findingText(finding, voice) }))
          .map(({ code, message, remedy, queue, task }) => (
            <li key={`${code} ${message}`}>
              <Badge tone={severity === "error" ? "bad" : "warn"}>{code}</Badge>
              {task === undefined ? null : (
                <Link href={taskPath(task)} className="any" data-row>
                  {shortName(task)}
                </Link>
              )}
              {queue === undefined || task !== undefined ? null : (
                <Link href={`/tasks?queue=${encodeURIComponent(queue)}`} className="any" data-row>
                  {`queue ${queue}`}
                </Link>
              )}
              <p className="wide any sentence">{message}</p>
              <p className="wide any">
                <strong>What to do:</strong> {remedy}
              </p>
            </li>
          ))}
      </ul>
    </Panel>
  );
}
