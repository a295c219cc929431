import type { AnswerTo, InputTo } from "@carillon/ops";
import { countText, duration } from "@carillon/ops/words";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { ownerPath, runPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { changed, timeIn } from "../lib/request.js";
import { shortTime, useNow, useZone } from "../lib/time.js";
import { AskButton } from "../parts/ask.js";
import { Button, Chips } from "../parts/button.js";
import { CopyAs } from "../parts/copy-as.js";
import { Filters } from "../parts/filters.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { asTexts, Ranges } from "../parts/ranges.js";
import { ReplayDialog } from "../parts/replay.js";
import { RowLink } from "../parts/row-link.js";
import { Badge } from "../parts/state.js";
import { Relative, Time } from "../parts/time.js";
import "../parts/ticks.css";
import { nameOf } from "../words.js";

type Failures = AnswerTo<"runs.failures">;
type Group = Failures["groups"][number];
type Asked = Omit<InputTo<"runs.failures">, "limit">;

const BYS = ["cause", "owner", "queue", "task"] as const;
const FIELDS = ["owner", "queue"] as const;
/** Read interval in ms: an answer reads up to 200,000 runs. */
const REFRESH_MS = 30_000;

/** Runs of a range that failed, by their cause: whom it hits, since when, after which change, and what is left to do. */
export default function Errors() {
  const [params, setParams] = useSearchParams();
  const zone = useZone();
  const text = (name: string) => params.get(name) || undefined;
  const by = BYS.find((one) => one === params.get("by")) ?? "cause";
  const only = { cause: text("cause"), owner: text("owner"), queue: text("queue") };
  const asked: Asked = { by, ...only, from: timeIn(params, "from"), to: timeIn(params, "to") };
  const failures = useCall("runs.failures", asked, { refresh: REFRESH_MS, maxAge: 10 });
  return (
    <>
      <PageHead title="Errors" />
      <Panel
        title={failures.data ? `${countText(failures.data.runs, "run")} failed` : "Errors"}
        end={<Filters names={FIELDS} />}
      >
        <div className="body inline">
          <div className="chips">
            <Chips
              names={BYS}
              text={(name) => `By ${name}`}
              chosen={by}
              onPick={(name) => setParams(changed({ by: name === "cause" ? undefined : name }))}
            />
          </div>
          <Ranges onPick={(range) => setParams(changed({ to: undefined, ...asTexts(range, zone) }))} />
          {failures.data && (
            <span className="soft small">
              <Time at={failures.data.from} /> – <Time at={failures.data.to} after={failures.data.from} />
            </span>
          )}
          {params.size === 0 ? null : <Link href="/errors">Clear the filters</Link>}
        </div>
        <Loaded of={failures}>
          {(answer) => (
            <>
              {asked.from !== undefined && answer.from > Number(asked.from) ? (
                <p className="note" data-tone="warn">
                  <span>
                    Too many runs ended in this range: only those since <Time at={answer.from} /> were read.
                  </span>
                </p>
              ) : null}
              <Rows of={answer.groups} none="No run failed in this time.">
                {(group) => (
                  <Row key={keyOf(group)} group={group} of={{ ...only, from: answer.from, to: answer.to }} />
                )}
              </Rows>
              {answer.more > 0 ? (
                <p className="body soft">{`And ${countText(answer.more, "more", "more")}, with fewer runs each.`}</p>
              ) : null}
            </>
          )}
        </Loaded>
        <div className="body">
          <CopyAs name="runs.failures" input={asked} />
        </div>
      </Panel>
    </>
  );
}

function keyOf({ cause, owner, queue, task }: Group): string {
  return cause?.id ?? owner ?? queue ?? (task ? taskPath(task) : "");
}

/** @param of the runs that are shown */
function Row({
  group,
  of,
}: {
  group: Group;
  of: Pick<Asked, "cause" | "owner" | "queue"> & Pick<Failures, "from" | "to">;
}) {
  const { cause, owner, queue, task, runs, madeUp, tasks, failing, owners, queues } = group;
  const { first, last, strip, examples, change } = group;
  const { act } = useMe();
  const [params] = useSearchParams();
  const [isOpen, setOpen] = useState(false);
  const [newest] = examples;
  const its = { ...(cause && { cause: cause.id }), ...(owner && { owner }), ...(queue && { queue }) };
  const within = changed({ by: cause && "task", ...its })(params);
  const fails =
    tasks === 1
      ? "it still fails"
      : `${failing.toLocaleString("en")} of ${countText(tasks, "task")} still fail`;
  return (
    <li>
      {cause ? <Badge tone="bad">{nameOf(cause.outcome)}</Badge> : null}
      <Badge tone={failing > 0 ? "bad" : "ok"}>{failing > 0 ? fails : "over"}</Badge>
      <span className="end inline">
        <Strip of={strip} from={of.from} to={of.to} />
        <strong>{countText(runs, "run")}</strong>
      </span>
      {task ? (
        <RowLink className="wide strong any" href={taskPath(task)}>
          {shortName(task)}
        </RowLink>
      ) : (
        <Link className="wide strong any" href={`/errors?${within}`} data-row>
          {cause ? cause.error || "without a message" : (owner ?? queue)}
        </Link>
      )}
      <p className="wide inline small">
        <span className="soft">
          {[
            task ? "" : countText(tasks, "task"),
            owner || task ? "" : countText(owners, "owner"),
            queue || task || queues === 1 ? "" : countText(queues, "queue"),
            madeUp > 0 ? `${madeUp.toLocaleString("en")} made up for` : "",
          ]
            .filter(Boolean)
            .join(", ")}
        </span>
        <span className="soft">
          first <Relative at={first} />, last <Relative at={last} />
        </span>
        {cause?.frame === undefined ? null : <code className="soft any">{cause.frame}</code>}
      </p>
      {change === undefined ? null : <Before change={change} first={first} />}
      <p className="wide inline small">
        {examples.map(({ run, task, at }) => (
          <Link key={run} href={runPath(run)} className="any">
            {shortName(task)}, <Time at={at} />
          </Link>
        ))}
        <span className="end inline">
          {newest === undefined ? null : (
            <Link className="button" href={runPath(newest.run)}>
              Newest run
            </Link>
          )}
          {cause ? (
            <AskButton
              text="Known until …"
              title="Silence the alerts of this cause"
              act="Silence"
              does="silences.put"
              given={{ cause: cause.id, ...(of.owner && { owner: of.owner }) }}
              fields={["until", "note"]}
              says="The silence holds."
            />
          ) : null}
          {act ? <Button onClick={() => setOpen(true)}>Run these again</Button> : null}
          {owner ? <Link href={ownerPath(owner)}>{`Owner ${owner}`}</Link> : null}
        </span>
      </p>
      {isOpen ? (
        <ReplayDialog
          title="Run these again"
          of={{ ...of, ...its, ...(task && { task: task.id, owner: task.owner, queue: task.queue }) }}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </li>
  );
}

/** The change before the first of the runs. */
function Before({ change, first }: { change: NonNullable<Group["change"]>; first: number }) {
  const { id, at, kind, by, text } = change;
  const what = [kind === "worker.start" ? "start of a worker" : kind, text].filter(Boolean).join(" ");
  return (
    <p className="wide small">
      {`${duration(first - at)} before the first: `}
      <Link href={id === undefined ? "/system" : `/settings/changes?to=${at + 1}`}>
        {`${what}${by ? ` by ${by}` : ""}`}
      </Link>
    </p>
  );
}

const BAR = { step: 7, width: 5, height: 20 };

/** Number of runs in each part of the range. */
function Strip({ of, from, to }: { of: readonly number[]; from: number; to: number }) {
  const zone = useZone();
  const now = useNow();
  const most = Math.max(...of);
  const at = (i: number) => shortTime(from + (i * (to - from)) / of.length, zone, now);
  return (
    <svg
      className="ticks"
      role="img"
      aria-label={`Most, ${countText(most, "run")}, at ${at(of.indexOf(most))}`}
      width={of.length * BAR.step}
      height={BAR.height}
    >
      {of.map((n, i) => {
        const height = n === 0 ? 1 : Math.max(3, Math.round((n / most) * (BAR.height - 1)));
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: its place is what it is
            key={i}
            data-tone={n === 0 ? undefined : "bad"}
            x={i * BAR.step + 0.5}
            y={BAR.height - height - 0.5}
            width={BAR.width}
            height={height}
          >
            <title>{`${at(i)}: ${n.toLocaleString("en")}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
