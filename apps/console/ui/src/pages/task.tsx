import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { Link } from "wouter";
import { call, type Named, ownerPath, refOf, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useAct, useCall } from "../lib/query.js";
import { namesIn } from "../lib/schedule-form.js";
import { done, pauseOf } from "../lib/undo.js";
import { Acts } from "../parts/acts.js";
import { again, FrozenNotes } from "../parts/freeze.js";
import { ErrorText, Loaded, PageHead } from "../parts/page.js";
import { TaskBadge } from "../parts/state.js";
import { Relative, ScheduleText, Time } from "../parts/time.js";
import { type Action, TaskDialog } from "./task-actions.js";
import { Definition, Figures, Revisions, Runs, Skips, Waiting } from "./task-parts.js";
import { Track } from "./task-track.js";
import "./task.css";
import { nameOf } from "../words.js";

/** One task: when it runs, why it did or did not, and actions on it. */
export default function TaskPage({ params }: PageProps) {
  const name = params as unknown as Named;
  const task = useCall("tasks.get", refOf(name));
  const [action, setAction] = useState<Action | undefined>();
  return (
    <Loaded of={task} title={shortName(name)} failed={<Revisions name={name} />}>
      {(task) => (
        <>
          <PageHead title={shortName(task)} badge={<TaskBadge {...task} />}>
            <Buttons task={task} onAction={setAction} />
          </PageHead>
          <div className="stack">
            <FrozenNotes task={task} />
            <Facts task={task} />
            <Track task={task} />
            <Waiting task={task} />
            <div className="panels">
              <Runs task={task} />
              <Figures task={task} />
            </div>
            <Skips task={task} />
            <Definition task={task} />
            <Revisions name={task} />
          </div>
          {action ? <TaskDialog task={task} action={action} onClose={() => setAction(undefined)} /> : null}
        </>
      )}
    </Loaded>
  );
}

function Buttons({ task, onAction }: { task: Task; onAction: (action: Action) => void }) {
  const { act, define } = useMe();
  const resume = useAct(() => call("tasks.resume", refOf(task)), {
    onDone: () => done("The task is resumed.", pauseOf(task)),
  });
  // A pause until a time is a freeze of the task alone.
  const freeze = useCall("freezes.list", {}).data?.freezes.find(
    ({ id, tasks }) => id === task.display?.freeze && tasks?.length === 1,
  );
  const lift = useAct(({ id }: NonNullable<typeof freeze>) => call("freezes.delete", { id }), {
    onDone: (_, freeze) => done("The task is resumed.", again(freeze)),
  });
  const asks = (action: Action) => () => onAction(action);
  const resumes = () => {
    if (freeze) lift.mutate(freeze);
    else if (task.due === undefined) resume.mutate(undefined);
    else onAction("resume");
  };
  const isHeld = freeze !== undefined || task.state === "paused";
  return (
    <Acts
      of={[
        act && isHeld && { text: "Resume", does: resumes, key: "p" },
        act && { text: "Run now", does: asks("trigger"), key: "r" },
        act && !isHeld && task.state === "scheduled" && { text: "Pause", does: asks("pause"), key: "p" },
        act && { text: "Freeze", does: asks("freeze"), key: "f" },
        act && { text: "Backfill", does: asks("backfill") },
        ...(define
          ? [
              { text: "Edit", does: `${taskPath(task)}/edit`, key: "e" },
              { text: "Duplicate", does: `/tasks/new?${new URLSearchParams({ ...refOf(task) })}` },
              { text: "Delete", does: asks("delete"), danger: true },
            ]
          : []),
      ]}
    />
  );
}

/** The schedule, its next time, and author and reason of a pause. */
function Facts({ task }: { task: Task }) {
  const { humanized, display, paused, lastStatus, lastChecked, openRuns, description } = task;
  const { next, skips } = display ?? {};
  return (
    <section className="panel">
      <div className="body stack">
        {description === undefined ? null : <p className="any">{description}</p>}
        {paused === undefined ? null : (
          <p className="note" data-tone="warn">
            <span>
              Paused <Relative at={paused.at} />
              {paused.by === undefined ? "" : `, by ${paused.by}`}
              {paused.note === undefined ? "" : `: ${paused.note}`}
            </span>
          </p>
        )}
        <dl className="figures">
          <div className="full">
            <dt>Schedule</dt>
            <dd className="words" title={humanized}>
              <ScheduleText of={humanized} />
              {[...new Set(namesIn(task.schedule))].map((name) => (
                <Link
                  key={name}
                  className="block small"
                  href={`/settings/calendars?open=${encodeURIComponent(name)}`}
                >
                  {`Calendar ${name}`}
                </Link>
              ))}
            </dd>
          </div>
          <div>
            <dt>Next</dt>
            <dd>
              {next === undefined ? "–" : <Relative at={next} />}
              {next === undefined ? null : (
                <span className="block soft small">
                  <Time at={next} own={task.timezone} />
                  {task.nominal === undefined || task.due !== next || task.nominal === next ? null : (
                    <>
                      {" "}
                      (planned for <Time at={task.nominal} />)
                    </>
                  )}
                  {skips ? <span className="block">Its times until then are skipped.</span> : null}
                </span>
              )}
            </dd>
          </div>
          <div>
            <dt>Last run</dt>
            <dd>
              {lastStatus?.outcome === undefined
                ? lastChecked === undefined
                  ? "never ran"
                  : "nothing to do"
                : nameOf(lastStatus.outcome)}
              {lastStatus?.finishedAt === undefined ? null : (
                <span className="block soft small">
                  <Relative at={lastStatus.finishedAt} />
                </span>
              )}
              {lastChecked === undefined ? null : (
                <span className="block soft small">
                  last checked <Relative at={lastChecked} />
                </span>
              )}
            </dd>
          </div>
          {openRuns === undefined ? null : (
            <div>
              <dt>Open runs</dt>
              <dd>
                {(["running", "queued"] as const)
                  .flatMap((state) => (openRuns[state] ? `${openRuns[state]} ${state}` : []))
                  .join(", ")}
              </dd>
            </div>
          )}
        </dl>
        {lastStatus?.error === undefined ? null : <ErrorText text={lastStatus.error} />}
        <p className="small soft">
          {`type ${task.type}`} · queue{" "}
          <Link href={`/tasks?queue=${encodeURIComponent(task.queue)}`}>{task.queue}</Link> · owner{" "}
          <Link href={ownerPath(task.owner)}>{task.owner}</Link>
        </p>
        {task.tags.length === 0 ? null : (
          <p className="chips">
            {task.tags.map((tag) => (
              <Link key={tag} className="chip" href={`/tasks?tag=${encodeURIComponent(tag)}`}>
                {tag}
              </Link>
            ))}
          </p>
        )}
        {task.set === undefined ? null : <OfSet {...task.set} />}
      </div>
    </section>
  );
}

/** The set that defines it, its last apply, and who has changed the definition since. */
function OfSet({ name, drift }: NonNullable<Task["set"]>) {
  const set = useCall("sets.list", {}).data?.sets.find((one) => one.name === name);
  return (
    <>
      <p className="small soft">
        Defined as code by the set <Link href={`/tasks?set=${encodeURIComponent(name)}`}>{name}</Link>
        {set?.version === undefined ? null : `, version ${set.version}`}
        {set === undefined ? null : (
          <>
            , applied {set.by === undefined ? "" : `by ${set.by}`} <Relative at={set.at} />
          </>
        )}
      </p>
      {drift === undefined ? null : (
        <p className="note" data-tone="warn">
          <span>
            {`Its definition was changed by ${drift.by ?? "someone"}`} <Relative at={drift.at} />. The next
            apply of the set undoes that: change it in the set too.
          </span>
        </p>
      )}
    </>
  );
}
