import { duration } from "@carillon/ops/words";
import type { Task, TaskStats } from "@carillon/sdk";
import type { TaskRevision } from "@carillon/sdk/internal";
import { useState } from "react";
import { Link } from "wouter";
import { type Named, refOf, runPath } from "../lib/api.js";
import { definitionOf } from "../lib/definition.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Changed } from "../parts/changed.js";
import { Confirm } from "../parts/confirm.js";
import { Answer } from "../parts/explain.js";
import { Empty, Loaded, More, Panel } from "../parts/page.js";
import { RunRows } from "../parts/run-rows.js";
import { Badge, OutcomeBadge } from "../parts/state.js";
import { Prose, Relative, Time } from "../parts/time.js";
import { nameOf } from "../words.js";

const STEP = 10;

interface Props {
  task: Task;
}

/** Length of a list that begins short, and how to lengthen it. */
function useLimit(): [number, () => void] {
  const [limit, setLimit] = useState(STEP);
  return [limit, () => setLimit(limit + 5 * STEP)];
}

/** The latest runs; more on request. */
export function Runs({ task }: Props) {
  const [limit, fetchNextPage] = useLimit();
  const runs = useCall("runs.list", { ...refOf(task), limit });
  return (
    <Panel title="Runs">
      <Loaded of={runs}>
        {({ runs }) => (
          <>
            {runs.length === 0 ? (
              <Empty>It has not run yet.</Empty>
            ) : (
              <RunRows runs={runs} own={task.timezone} />
            )}
            <More of={{ hasNextPage: runs.length >= limit, fetchNextPage }}>More runs</More>
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** Statistics, which outlive the records of runs. */
export function Figures({ task }: Props) {
  const stats = useCall("runs.stats", refOf(task));
  return (
    <Panel title="Statistics">
      <Loaded of={stats}>
        {(stats) =>
          stats.runs === stats.open ? (
            <Empty>No run has ended yet.</Empty>
          ) : (
            <div className="body stack">
              <dl className="figures">
                <Figure name="Succeeded" value={stats.successRate} as={percent} />
                <Figure name="Usually takes" value={stats.usualMs} as={duration} />
                <Figure name="Last took" value={stats.lastMs} as={duration} />
                <Figure name="Last was late by" value={stats.lastLateMs} as={duration} />
                <Figure name="Last waited" value={stats.lastWaitMs} as={duration} />
                <Figure name="Failures in a row" value={stats.consecutiveFailures || undefined} as={String} />
                <Figure name="Crashes" value={stats.crashes || undefined} as={String} />
              </dl>
              <ul className="inline">
                {Object.entries(stats.outcomes)
                  .filter(([, n]) => n > 0)
                  .map(([outcome, n]) => (
                    <li key={outcome} className="inline">
                      <OutcomeBadge outcome={outcome as keyof TaskStats["outcomes"]} />{" "}
                      {n.toLocaleString("en")}
                    </li>
                  ))}
              </ul>
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}

const percent = (share: number) => `${(share * 100).toFixed(share > 0.99 && share < 1 ? 1 : 0)} %`;

interface FigureProps {
  name: string;
  value: number | undefined;
  as: (value: number) => string;
}

function Figure({ name, value, as }: FigureProps) {
  if (value === undefined) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{as(value)}</dd>
    </div>
  );
}

/** Occurrences that were not enqueued, with reasons. */
export function Skips({ task }: Props) {
  const skips = useCall("runs.skips", refOf(task));
  const [asked, setAsked] = useState<{ row: string; at: number }>();
  const [limit, fetchNextPage] = useLimit();
  const own = task.timezone;
  const entries = skips.data?.skips ?? [];
  if (entries.length === 0) return null;
  return (
    <Panel title="Skips">
      <ul className="rows">
        {entries.slice(0, limit).map(({ reason, from, to, decisions, note, run }) => {
          const row = `${reason} ${from} ${to}`;
          const isAsked = asked?.row === row;
          return (
            <li key={row}>
              <Badge tone="skip">{reason}</Badge>
              <Time at={from} own={own} />
              {from === to ? null : (
                <>
                  to <Time at={to} after={from} own={own} />
                </>
              )}
              {decisions > 1 ? (
                <span className="soft">{`${decisions.toLocaleString("en")} times`}</span>
              ) : null}
              {run === undefined ? null : <Link href={runPath(run)}>the run in its way</Link>}
              <Button
                look="plain end"
                aria-expanded={isAsked}
                onClick={() => setAsked(isAsked ? undefined : { row, at: to })}
              >
                Why?
              </Button>
              {note === undefined ? null : (
                <span className="wide small soft any">
                  <Prose of={note} />
                </span>
              )}
              {isAsked ? (
                <div className="wide">
                  <Answer task={task} at={asked.at} onPick={(at) => setAsked({ row, at })} />
                </div>
              ) : null}
            </li>
          );
        })}
      </ul>
      <More of={{ hasNextPage: entries.length > limit, fetchNextPage }}>Show all</More>
    </Panel>
  );
}

/** Occurrences that wait for an open run, next one first, each with its own payload if it has one. */
export function Waiting({ task: { pending, timezone } }: Props) {
  const [limit, fetchNextPage] = useLimit();
  if (pending.length === 0) return null;
  return (
    <Panel title="Waiting occurrences" end={<span className="soft">{pending.length}</span>}>
      <ul className="rows">
        {pending.slice(0, limit).map(({ key, nominal, trigger, payload }) => (
          <li key={key}>
            <Time at={nominal} own={timezone} />
            {trigger === "schedule" ? null : <Badge>{nameOf(trigger)}</Badge>}
            {payload === undefined ? null : <code className="wide small any">{JSON.stringify(payload)}</code>}
          </li>
        ))}
      </ul>
      <More of={{ hasNextPage: pending.length > limit, fetchNextPage }}>More waiting occurrences</More>
    </Panel>
  );
}

/** The definition as a put takes it, and its authors. */
export function Definition({ task }: Props) {
  const { created, createdBy, updated, updatedBy } = task;
  return (
    <Panel title="Definition">
      <div className="body stack">
        <p className="soft">
          Created <Relative at={created} />
          {createdBy === undefined ? "" : ` by ${createdBy}`}, changed <Relative at={updated} />
          {updatedBy === undefined ? "" : ` by ${updatedBy}`} ·{" "}
          <Link
            href={`/settings/changes?${new URLSearchParams({ task: task.id, owner: task.owner, queue: task.queue })}`}
          >
            Changes
          </Link>
        </p>
        <details>
          <summary>As JSON</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long definition is scrolled with the keyboard */}
          <pre tabIndex={0}>{JSON.stringify(definitionOf(task), null, 2)}</pre>
        </details>
      </div>
    </Panel>
  );
}

/** An earlier definition against the present one, with the next times of both. */
function Preview({ name, number }: { name: Named; number: number }) {
  const compared = useCall("tasks.revisions", { ...refOf(name), compare: number });
  return (
    <Loaded of={compared}>
      {({ preview }) => (preview === undefined ? null : <Changed of={preview} />)}
    </Loaded>
  );
}

/** Earlier definitions, also of a deleted task, each with a button that restores it. */
export function Revisions({ name }: { name: Named }) {
  const { define } = useMe();
  const [chosen, setChosen] = useState<TaskRevision | undefined>();
  const revisions = useCall("tasks.revisions", refOf(name));
  const entries = revisions.data?.revisions ?? [];
  if (entries.length === 0) return null;
  return (
    <Panel title="Earlier definitions">
      <ul className="rows">
        {entries.map((revision) => (
          <li key={revision.number}>
            <span>{`Revision ${revision.number}`}</span>
            <span className="soft">
              {revision.deleted === undefined ? "replaced" : "deleted"} <Relative at={revision.until} />
              {revision.by === undefined ? "" : `, written by ${revision.by}`}
            </span>
            <Button look="plain end" onClick={() => setChosen(revision)}>
              {define ? "Show or restore" : "Show"}
            </Button>
          </li>
        ))}
      </ul>
      {chosen === undefined ? null : (
        <Confirm
          title={`Revision ${chosen.number}`}
          act="Restore"
          wide
          does="tasks.restore"
          input={{ ...refOf(name), number: chosen.number }}
          shows={define}
          says="The revision is restored."
          busy={!define}
          onClose={() => setChosen(undefined)}
        >
          {define ? null : <Preview name={name} number={chosen.number} />}
        </Confirm>
      )}
    </Panel>
  );
}
