import type { AnswerTo } from "@carillon/ops";
import { countText, duration } from "@carillon/ops/words";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { doneToMany } from "../lib/undo.js";
import { Button } from "../parts/button.js";
import { Confirm, Field, Select } from "../parts/confirm.js";
import { Filters } from "../parts/filters.js";
import { Form } from "../parts/form.js";
import { notify } from "../parts/notices.js";
import { Empty, Loaded, PageHead, Panel, Scroll, TableHead } from "../parts/page.js";
import { Time } from "../parts/time.js";
import { CATCH_UPS } from "../words.js";

type ResumePlan = AnswerTo<"tasks.resumePlan">;
const NAMES = ["owner", "tag", "queue", "note"] as const;
const POLICIES = ["all", "one", "skip"] as const;
const MINUTE = 60_000;

type Scope = Readonly<Record<string, string>>;

interface Owing {
  readonly count: number;
  /** False: there are at least that many. */
  readonly exact: boolean;
}

const exact = ({ count, exact }: Owing) => `${exact ? "" : "at least "}${count.toLocaleString("en")}`;
const starts = ({ count, exact }: Owing) => `${exact ? "" : "at least "}${countText(count, "start")}`;

/** For use after an incident: what paused tasks owe, what each choice starts, and the resume of all of them. */
export default function Resume() {
  const { wide } = useMe();
  const [params] = useSearchParams();
  const scope: Scope = Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = params.get(name);
      return value ? [[name, value]] : [];
    }),
  );
  // A note narrows the selection, but the API wants tasks to be selected too. A bound token selects its owner.
  const isScoped = !wide || ["owner", "tag", "queue"].some((name) => name in scope);
  return (
    <>
      <PageHead title="Resume with a plan" />
      <div className="stack">
        <Panel title="Which paused tasks">
          <div className="body">
            <Filters names={NAMES} act="Show the plan" />
          </div>
        </Panel>
        {isScoped ? (
          <Plan key={params.toString()} scope={scope} />
        ) : (
          <Empty>
            Name an owner, a tag or a queue, and perhaps the note of the pause. You see what the tasks owe,
            then choose.
          </Empty>
        )}
      </div>
    </>
  );
}

function Plan({ scope }: { scope: Scope }) {
  const { act } = useMe();
  const plan = useCall("tasks.resumePlan", scope);
  return (
    <Loaded of={plan}>
      {(plan) =>
        plan.tasks === 0 ? (
          <Empty>No paused task matches.</Empty>
        ) : (
          <>
            <Owed plan={plan} />
            {act ? <Choice scope={scope} plan={plan} /> : null}
          </>
        )
      }
    </Loaded>
  );
}

function Owed({ plan: { tasks, owed, policies, most, unpaused, frozen, held } }: { plan: ResumePlan }) {
  const notes = [
    unpaused.tasks > 0 &&
      `${countText(unpaused.tasks, "task is", "tasks are")} overdue and not paused: their catch-up policies decide when a node comes.`,
    frozen.count > 0 &&
      `${starts(frozen)} skipped by freezes in the last day and not made up for. They are not owed: a backfill runs them.`,
    held > 0 && `${countText(held, "task is", "tasks are")} held by a freeze until it ends.`,
  ].filter((note) => note !== false);
  const missed =
    owed.count === 0
      ? ": no start was missed."
      : `, of which ${owed.tasks.toLocaleString("en")} missed ${starts(owed)}.`;
  return (
    <Panel title="What is owed">
      <div className="body stack">
        <p>{`${countText(tasks, "paused task")}${missed}`}</p>
        {owed.count === 0 ? null : (
          <>
            <h3>By catch-up policy</h3>
            <dl className="figures">
              {POLICIES.map((name) => (
                <div key={name}>
                  <dt>
                    {CATCH_UPS[name]} ({countText(policies[name].tasks, "task")})
                  </dt>
                  <dd>{exact(policies[name])}</dd>
                </div>
              ))}
            </dl>
          </>
        )}
        {notes.map((note) => (
          <p key={note} className="note" data-tone="warn">
            {note}
          </p>
        ))}
      </div>
      {most.length === 0 ? null : (
        <Scroll label="Tasks that owe most">
          <table className="plain">
            <TableHead of={["Task", "Owed", "Catch-up", "First", "Last"]} />
            <tbody>
              {most.map((task) => (
                <tr key={taskPath(task)}>
                  <td className="nowrap">
                    <Link href={taskPath(task)} data-row>
                      {shortName(task)}
                    </Link>
                  </td>
                  <td>{exact(task.owed)}</td>
                  <td>{CATCH_UPS[task.catchUp]}</td>
                  <td>
                    <Time at={task.from} />
                  </td>
                  <td>
                    <Time at={task.to} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}

/** One choice, with the load that it causes. */
function Choice({ scope, plan }: { scope: Scope; plan: ResumePlan }) {
  const [missed, setMissed] = useState<keyof ResumePlan["starts"]>("skip");
  const [rate, setRate] = useState("60");
  const [asks, setAsks] = useState(false);
  const paced = missed === "all" || (missed === "latest" && rate !== "");
  const perMinute = Number(rate);
  const { count } = plan.starts[missed];
  const text =
    count === 0 ? "Nothing starts; schedules go on with their next time." : `${starts(plan.starts[missed])}.`;
  const isRate = !paced || (perMinute > 0 && perMinute <= 60_000);
  const load =
    paced && isRate
      ? `${perMinute.toLocaleString("en")} a minute, over ${duration((count / perMinute) * MINUTE)}.`
      : "All at once.";
  return (
    <Panel title="Choose">
      <Form className="body form" onSubmit={() => setAsks(true)}>
        <Field label="Times that passed meanwhile">
          <Select
            value={missed}
            options={{
              skip: "drop them: nothing starts",
              latest: `the latest of each task: ${starts(plan.starts.latest)}`,
              "catch-up": `let each task's policy decide: ${starts(plan.starts["catch-up"])}`,
              all: `all of them: ${starts(plan.starts.all)}`,
            }}
            onSet={setMissed}
          />
        </Field>
        {missed === "all" || missed === "latest" ? (
          <Field
            label="Starts a minute, all tasks together"
            {...(missed === "latest" ? { hint: "Empty: all at once." } : {})}
          >
            <input
              className="input"
              type="number"
              min="0.001"
              max="60000"
              step="any"
              required={missed === "all"}
              value={rate}
              onChange={(event) => setRate(event.target.value)}
            />
          </Field>
        ) : null}
        <p className="note" role="status">
          <strong>{text}</strong>
          {count === 0 ? null : <span>{load}</span>}
        </p>
        <div className="actions">
          <Button type="submit" look="main" disabled={!isRate}>
            {`Resume ${countText(plan.tasks, "task")}`}
          </Button>
        </div>
      </Form>
      {asks ? (
        <Confirm
          title={`Resume ${countText(plan.tasks, "task")}`}
          act="Resume"
          does="tasks.resumeMany"
          input={{ ...scope, missed, ...(paced ? { perMinute } : {}) }}
          onDone={(done) => {
            doneToMany("resume", done);
            const { count = 0, batches: [batch] = [] } = done.replayed ?? {};
            if (count > 0)
              notify(
                "ok",
                `Another resume let ${countText(count, "task")} go on: its backfills run what they owed.`,
                { next: ["Show them", `/runs?filter=backfills&batch=${batch}`] },
              );
          }}
          onClose={() => setAsks(false)}
        >
          <p>
            {text} {count === 0 ? "" : load}
          </p>
        </Confirm>
      ) : null}
    </Panel>
  );
}
