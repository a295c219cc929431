import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { Link } from "wouter";
import { type Named, shortName, taskPath } from "../lib/api.js";
import { useCall, useLater } from "../lib/query.js";
import { Changed, Edits } from "./changed.js";
import { Curve } from "./curve.js";
import { Time } from "./time.js";

/** Answers of dry runs: each operation has some of these. */
interface Answer {
  readonly holds?: AnswerTo<"freezes.put">["holds"];
  readonly preview?: AnswerTo<"tasks.restore">["preview"];
  readonly moved?: AnswerTo<"calendars.put">["moved"];
  readonly count?: number;
  /** Number of tasks that the runs belong to, if it concerns runs. */
  readonly tasks?: number;
  readonly sample?: readonly (Named | { readonly run: string; readonly task: Named })[];
  readonly refused?: AnswerTo<"tasks.pauseMany">["refused"];
  readonly edits?: AnswerTo<"tasks.editMany">["edits"];
  readonly total?: number;
  readonly left?: number;
  readonly curve?: AnswerTo<"tasks.spread">["curve"];
  readonly until?: AnswerTo<"runs.replayMany">["until"];
}

/** The effect of a call before it is made: the same call as a dry run. @param input undefined: not complete yet */
export function useDry<Name extends OperationName>(name: Name, input: InputTo<Name> | undefined) {
  // A note changes no effect.
  const dry = input && { ...input, note: undefined, dryRun: true };
  const calm = useLater(dry);
  const isCalm = dry !== undefined && JSON.stringify(calm) === JSON.stringify(dry);
  const { data, error } = useCall(name, isCalm ? (calm as InputTo<Name>) : undefined);
  return { data: isCalm && !error ? (data as Answer | undefined) : undefined, error: isCalm ? error : null };
}

/** Whether an effect says that nothing would happen. */
export function isNothing({ count, total }: Answer): boolean {
  return (count ?? total) === 0;
}

/** An effect in numbers, with the tasks that it concerns. */
export function Effect({ of }: { of: Answer }) {
  const { holds, preview, moved, count, tasks, total, left, until, curve, sample = [], refused, edits } = of;
  const tone = isNothing(of) || (holds?.warnings.length ?? 0) > 0 ? "warn" : "ok";
  // It has colours of its own.
  if (preview) return <Changed of={preview} />;
  const note = (
    <div className="note" role="status" data-tone={tone}>
      {holds === undefined ? null : <Holds of={holds} />}
      {moved === undefined ? null : <Moved of={moved} />}
      {total === undefined ? null : (
        <strong>
          {timesText(total, left)}
          {until === undefined ? null : (
            <>
              {", over by"} <Time at={until} />.
            </>
          )}
        </strong>
      )}
      {count === undefined ? null : (
        <strong>
          {edits && refused?.count
            ? "The change does not fit all of them, so none is changed:"
            : countOf(count, tasks)}
        </strong>
      )}
      {edits ? null : <Sample of={sample} count={count ?? 0} />}
      {curve === undefined || count === 0 ? null : <Curve of={curve} />}
      {left ? (
        <span>{`${countText(left, "failure is", "failures are")} left out: succeeded since, under way, or about to be run again.`}</span>
      ) : null}
      {refused === undefined || refused.count === 0 ? null : <Refused of={refused} />}
    </div>
  );
  if (edits === undefined || edits.length === 0) return note;
  return (
    <>
      {note}
      <Edits of={edits} />
      {count !== undefined && count > edits.length ? (
        <p>{`and ${countText(count - edits.length, "other")}`}</p>
      ) : null}
    </>
  );
}

/** Times of a backfill, or runs that are run again, of which some failures are left out. */
function timesText(total: number, left: number | undefined): string {
  if (left === undefined) return `${countText(total, "time")} in this range.`;
  return total === 0 ? "This would run nothing again." : `Runs ${countText(total, "run")} again`;
}

/** Tasks that are changed; or runs that are ended, of some tasks. */
function countOf(count: number, tasks: number | undefined): string {
  if (tasks === undefined)
    return count === 0 ? "This would change no task." : `This concerns ${countText(count, "task")}:`;
  if (count === 0) return "No run would end: none is open.";
  return `This ends ${countText(count, "run")} of ${countText(tasks, "task")}:`;
}

function Refused({ of: { count, sample } }: { of: NonNullable<Answer["refused"]> }) {
  const rest = count - sample.length;
  return (
    <>
      <strong>{`${countText(count, "task")} refused:`}</strong>
      <ul>
        {sample.map(({ task, message }) => {
          const name =
            typeof task === "string" ? task : shortName({ id: task.id, owner: task.owner ?? "system" });
          return <li key={`${name} ${message}`} className="any">{`${name}: ${message}`}</li>;
        })}
        {rest > 0 ? <li>{`and ${countText(rest, "other")}`}</li> : null}
      </ul>
    </>
  );
}

function Holds({ of: { tasks, starts, until, running, warnings } }: { of: NonNullable<Answer["holds"]> }) {
  const [warning] = warnings;
  if (warning) return <span>{`${warning.message} ${warning.remedy}`}</span>;
  return (
    <span>
      {`Concerns ${countText(tasks, "task")}`}
      {starts === undefined ? null : (
        <>
          , {`${countText(starts, "start")} until`} <Time at={until} />
        </>
      )}
      {running === 0
        ? ""
        : `; ${running === 1 ? "1 runs and goes on" : `${running.toLocaleString("en")} run and go on`}`}
    </span>
  );
}

function Moved({ of: { count, sample } }: { of: NonNullable<Answer["moved"]> }) {
  return (
    <>
      <strong>{`${countText(count, "task gets", "tasks get")} another next time${count === 0 ? "." : ":"}`}</strong>
      <ul>
        {sample.map(({ before, after, ...task }) => (
          <li key={taskPath(task)}>
            <Link href={taskPath(task)}>{shortName(task)}</Link>{" "}
            {before === undefined ? "–" : <Time at={before} />} →{" "}
            {after === undefined ? "–" : <Time at={after} />}
          </li>
        ))}
      </ul>
    </>
  );
}

function Sample({ of, count }: { of: NonNullable<Answer["sample"]>; count: number }) {
  if (of.length === 0) return null;
  return (
    <ul className="inline">
      {of.map((one) => (
        <li key={"run" in one ? one.run : taskPath(one)}>{shortName("run" in one ? one.task : one)}</li>
      ))}
      {count > of.length ? <li>{`and ${countText(count - of.length, "other")}`}</li> : null}
    </ul>
  );
}
