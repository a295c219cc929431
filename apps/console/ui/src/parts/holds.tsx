import { useEffect, useState } from "react";
import { useCall } from "../lib/query.js";
import { words } from "../words.js";
import { Time } from "./time.js";

const w = words.holds;
/** Time without typing after which the server is asked, in ms. */
const CALM = 400;

interface Props {
  preview: "freezes.preview" | "silences.preview" | "queues.previewPause";
  /** The input that it previews. */
  of: object;
  ready: boolean;
}

/**
 * The extent of a freeze, a silence or a pause before it is made, by a preview of the same request; a warning with the
 * nearest name if nothing matches.
 */
export function HoldsLine({ preview, of, ready }: Props) {
  const text = JSON.stringify(of);
  const [calm, setCalm] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setCalm(text), CALM);
    return () => clearTimeout(timer);
  }, [text]);
  const asked = useCall(preview, ready && calm === text ? JSON.parse(calm) : undefined);
  if (!ready || calm !== text || asked.data === undefined || asked.error) return null;
  const { tasks, starts, until, running, warnings = [] } = asked.data.holds;
  const [warning] = warnings;
  return (
    <p className={warning ? "note" : "soft"} data-tone={warning ? "warn" : undefined}>
      {warning ? (
        `${warning.message} ${warning.remedy}`
      ) : (
        <>
          {w.tasks(tasks)}
          {starts === undefined ? null : (
            <>
              , {w.starts(starts)} <Time at={until} />
            </>
          )}
          {running === 0 ? "" : `; ${w.running(running)}`}
        </>
      )}
    </p>
  );
}
