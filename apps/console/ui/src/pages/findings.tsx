import type { AnswerTo } from "@carillon/ops";
import { countText, findingText } from "@carillon/ops/words";
import { Link } from "wouter";
import { shortName, taskPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { useVoice } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { Loaded, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { foldedOf, Remedy, Symptoms } from "./now/truth.js";

type Finding = AnswerTo<"health.doctor">["findings"][number];

/** Long, because each call reads up to 2,000 tasks. */
const REFRESH_MS = 60_000;

/** Faults of the whole namespace that the doctor finds, each with its proof and its remedy. */
export function Findings() {
  const doctor = useCall("health.doctor", {}, { refresh: REFRESH_MS, maxAge: 10 });
  return (
    <Panel
      title="Findings of the doctor"
      end={
        <Button disabled={doctor.isFetching} onClick={() => void doctor.refetch()}>
          Check again
        </Button>
      }
    >
      <Loaded of={doctor}>
        {({ findings, tasks, skipped }) => (
          <>
            <Rows of={foldedOf(findings)} none="Nothing is wrong.">
              {({ cause, symptoms }) => (
                <li key={JSON.stringify(cause)}>
                  <Found of={cause} />
                  <Symptoms of={symptoms}>
                    <ul className="rows">
                      {symptoms.map((one) => (
                        <li key={JSON.stringify(one)}>
                          <Found of={one} />
                        </li>
                      ))}
                    </ul>
                  </Symptoms>
                </li>
              )}
            </Rows>
            <p className="body small soft any">
              {`${tasks.read.toLocaleString("en")} of ${countText(tasks.of, "task")} checked.`}
              {skipped.length === 0 ? "" : ` Not checked: ${skipped.join("; ")}.`}
            </p>
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Found({ of }: { of: Finding }) {
  const { severity, code, queue, task } = of;
  const { message, remedy } = findingText(of, useVoice());
  return (
    <>
      <Badge tone={severity === "error" ? "bad" : "warn"}>{severity}</Badge>
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
      <code className="end soft small">{code}</code>
      <p className="wide any">{message}</p>
      <p className="wide">
        <Remedy code={code} text={remedy} />
      </p>
    </>
  );
}
