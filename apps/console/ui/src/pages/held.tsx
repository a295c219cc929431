import type { OperationName } from "@carillon/ops";
import { scopeText } from "@carillon/ops/words";
import { type ComponentProps, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { type Named, refOf, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall, usePages } from "../lib/query.js";
import { pauseOf } from "../lib/undo.js";
import { AskButton } from "../parts/ask.js";
import { Button } from "../parts/button.js";
import { again, FreezeTime, NewFreeze } from "../parts/freeze.js";
import { Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { Relative, Time } from "../parts/time.js";
import { labelOf, MISSED } from "../words.js";

const KINDS = {
  frozen: "frozen",
  toCome: "to be frozen",
  silence: "silenced alerts",
  task: "paused task",
  queue: "paused queue",
};

/** Something that somebody holds on purpose, and the button that lifts it. */
interface Hold {
  readonly kind: keyof typeof KINDS;
  readonly what: string;
  readonly task?: Named | undefined;
  readonly when: ReactNode;
  readonly by?: string | undefined;
  readonly note?: string | undefined;
  readonly lift: ReactNode;
}

/** Freezes, pauses of tasks and queues, and silences: each with its time, its author, its reason, and a button that lifts it. */
export default function Held() {
  const { act } = useMe();
  const [isNew, setNew] = useState(false);
  const { holds, paused } = useHolds();
  return (
    <>
      <PageHead title="Held">
        <Link className="button" href="/resume">
          Resume with a plan
        </Link>
        <AskButton
          text="Silence"
          title="Silence alerts"
          act="Silence"
          does="silences.put"
          scopes={["task", "owner", "queue", "kind", "cause", "all"]}
          within={{ task: "owner" }}
          fields={["until", "note"]}
          looks={{ kind: { first: "failed" }, all: { label: "All alerts" } }}
          says="The silence holds."
        >
          <p>Until its end, alerts that match are recorded and not sent.</p>
        </AskButton>
        {act ? (
          <Button look="main" onClick={() => setNew(true)}>
            Freeze
          </Button>
        ) : null}
      </PageHead>
      <Panel title="Held on purpose">
        <Loaded of={holds}>
          {(holds) => (
            <Rows of={holds} none="Nothing is frozen, paused or silenced.">
              {({ kind, what, task, when, by, note, lift }, i) => (
                <li key={`${kind} ${what} ${i}`}>
                  <Badge tone={kind === "toCome" ? "none" : "warn"}>{KINDS[kind]}</Badge>
                  <strong className="any">
                    {task ? (
                      <Link href={taskPath(task)} data-row>
                        {shortName(task)}
                      </Link>
                    ) : (
                      what
                    )}
                  </strong>
                  <span className="soft">
                    {when}
                    {by ? ` · ${by}` : ""}
                  </span>
                  {lift}
                  {note ? <span className="wide any">{note}</span> : null}
                </li>
              )}
            </Rows>
          )}
        </Loaded>
        <More of={paused}>More paused tasks</More>
      </Panel>
      {isNew ? <NewFreeze onClose={() => setNew(false)} /> : null}
    </>
  );
}

function useHolds() {
  const freezes = useCall("freezes.list", {});
  const status = useCall("health.status", {});
  const silences = useCall("silences.list", {});
  const paused = usePages("tasks.list", { state: "paused", limit: 100 });
  const { error, refetch } = [freezes, status, silences, paused].find(({ error }) => error) ?? freezes;
  const data: Hold[] | undefined = freezes.data &&
    status.data &&
    silences.data &&
    paused.data && [
      ...freezes.data.freezes.map((freeze) => ({
        ...{ kind: freeze.active ? ("frozen" as const) : ("toCome" as const), what: scopeText(freeze) },
        ...{
          task: freeze.tasks?.length === 1 ? freeze.tasks[0] : undefined,
          by: freeze.by,
          note: freeze.note,
        },
        when: <FreezeTime freeze={freeze} />,
        lift: (
          <Lift of={scopeText(freeze)} does="freezes.delete" given={{ id: freeze.id }} undo={again(freeze)}>
            <p>
              Schedules go on with their next time. Single times, retries and backfills that were held go on
              now.
            </p>
          </Lift>
        ),
      })),
      ...status.data.queues.flatMap(({ name, paused }) =>
        paused === undefined
          ? []
          : {
              ...{ kind: "queue" as const, what: name, by: paused.by, note: paused.note },
              when: paused.at !== undefined && <Since at={paused.at} />,
              lift: (
                <Lift
                  of={name}
                  does="queues.resume"
                  given={{ queue: name }}
                  undo={{ operation: "queues.pause", input: { queue: name, note: paused.note } }}
                />
              ),
            },
      ),
      ...silences.data.silences.map(({ id, all, until, untilGone, by, note, created: _, ...scope }) => {
        const names = Object.entries(scope).map(([field, value]) => `${labelOf(field)} ${value}`);
        const what = all ? "All alerts" : names.join(", ");
        return {
          ...{ kind: "silence" as const, what, by, note },
          when: (
            <>
              to <Time at={until} /> (<Relative at={until} />){untilGone ? " or later" : ""}
            </>
          ),
          lift: (
            <Lift
              of={what}
              does="silences.delete"
              given={{ id }}
              undo={{
                operation: "silences.put",
                input: { ...scope, all, note, until: untilGone ? undefined : until },
              }}
            />
          ),
        };
      }),
      ...paused.data.pages
        .flatMap(({ tasks }) => tasks)
        .map((task) => ({
          ...{ kind: "task" as const, what: shortName(task), task, ...task.paused },
          when: task.paused && <Since at={task.paused.at} />,
          lift: (
            <Lift
              of={shortName(task)}
              does="tasks.resume"
              given={refOf(task)}
              undo={pauseOf(task)}
              fields={["missed"]}
              looks={{ missed: MISSED }}
            />
          ),
        })),
    ];
  return { holds: { data, error, refetch }, paused };
}

/** The button that lifts a hold. */
function Lift<Name extends OperationName>({
  of,
  ...asks
}: { of: string } & Omit<ComponentProps<typeof AskButton<Name>>, "title">) {
  return <AskButton {...asks} text="Lift" look="end" title={`Lift: ${of}`} act="Lift" says="It is lifted." />;
}

function Since({ at }: { at: number }) {
  return (
    <>
      since <Time at={at} /> until it is lifted
    </>
  );
}
