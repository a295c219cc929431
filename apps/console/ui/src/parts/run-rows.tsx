import { duration } from "@carillon/ops/words";
import type { Run } from "@carillon/sdk";
import { Link } from "wouter";
import { firstLine, runPath, shortName, taskPath } from "../lib/api.js";
import type { Selection } from "../lib/selection.js";
import { useNow } from "../lib/time.js";
import { nameOf } from "../words.js";
import { Changing } from "./changing.js";
import { RowLink } from "./row-link.js";
import { Badge, RunBadge, toneOf } from "./state.js";
import { Relative, Time } from "./time.js";

interface Props {
  runs: readonly Run[];
  withTask?: boolean;
  /** The zone of the task, if all runs are of one. */
  own?: string | undefined;
  /** Undefined: none can be chosen. */
  selection?: Selection<Run> | undefined;
}

/** Runs as rows: how each ended, when it was due, how long it took, and the first line of its error. */
export function RunRows({ runs, withTask, selection, own }: Props) {
  const now = useNow();
  return (
    <ul className="rows">
      {runs.map((run) => {
        const { id, task, nominal, started, finished, trigger, attempts } = run;
        // The error of a run that went well is that of an earlier attempt.
        const error = toneOf(run.outcome) === "ok" ? undefined : run.error;
        return (
          <Changing as="li" key={id} state={run.outcome ?? run.state}>
            {selection === undefined ? null : (
              <input
                type="checkbox"
                aria-label={`Select the run of ${shortName(task)}`}
                checked={selection.has(run)}
                onChange={() => selection.toggle(run)}
              />
            )}
            <RunBadge run={run} />
            {withTask ? (
              <>
                <RowLink href={runPath(id)}>{shortName(task)}</RowLink>
                <Link className="soft small" href={`${taskPath(task)}?explain=${nominal}`}>
                  <Time at={nominal} />
                </Link>
              </>
            ) : (
              <Link href={runPath(id)} data-row>
                <Time at={nominal} own={own} />
              </Link>
            )}
            {trigger === "schedule" ? null : <Badge>{nameOf(trigger)}</Badge>}
            {attempts > 1 ? <span className="soft small">{`${attempts} attempts`}</span> : null}
            <span className="end soft">
              {started === undefined ? "" : duration(Math.max(0, (finished ?? now) - started))}{" "}
              {finished === undefined ? null : (
                <>
                  · <Relative at={finished} />
                </>
              )}
            </span>
            {error === undefined ? null : <span className="wide small soft cut">{firstLine(error)}</span>}
          </Changing>
        );
      })}
    </ul>
  );
}
