import type { AnswerTo } from "@carillon/ops";
import { covers, duration, scopeText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { Link } from "wouter";
import { call, type Named, refOf } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall } from "../lib/query.js";
import { type Pattern, withPattern, withRows } from "../lib/schedule-form.js";
import { isoTime, typedTime, useZone } from "../lib/time.js";
import { words } from "../words.js";
import { Button, Chips } from "./button.js";
import { Confirm, ScopeField, TextField, TimeField } from "./confirm.js";
import { Days } from "./days.js";
import { notify } from "./notices.js";
import { Rows } from "./page.js";
import { Badge } from "./state.js";
import { Prose, Relative, Time } from "./time.js";

const w = words.freezes;
type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** The time of a freeze: its end, or its windows. */
function When({ freeze: { active, activeUntil, from, until, humanized, length } }: { freeze: FreezeView }) {
  if (humanized !== undefined) {
    return (
      <>
        {`for ${length === undefined ? "" : duration(length)} each,`} <Prose of={humanized} />
      </>
    );
  }
  const end = active ? activeUntil : until;
  return (
    <>
      {active ? "since" : "from"} <Time at={from} />
      {end === undefined ? (
        ` until it is lifted`
      ) : (
        <>
          {" "}
          {words.task.until} <Time at={end} /> (<Relative at={end} />)
        </>
      )}
    </>
  );
}

/** Freezes as rows, each with a button that lifts it. */
export function FreezeRows({ of }: { of: readonly FreezeView[] }) {
  const { act } = useMe();
  const [lifting, setLifting] = useState<FreezeView | undefined>();
  return (
    <>
      <Rows of={of} none="Nothing is frozen.">
        {(freeze) => (
          <li key={freeze.id}>
            <strong className="any">{scopeText(freeze)}</strong>
            <Badge tone={freeze.active ? "warn" : "none"}>{freeze.active ? "in force" : "to come"}</Badge>
            <span className="soft">
              <When freeze={freeze} />
              {freeze.by === undefined ? "" : ` · ${freeze.by}`}
            </span>
            {act ? (
              <Button look="end" onClick={() => setLifting(freeze)}>
                {w.lift}
              </Button>
            ) : null}
            {freeze.note === undefined ? null : <span className="wide any">{freeze.note}</span>}
          </li>
        )}
      </Rows>
      {lifting === undefined ? null : (
        <Confirm
          title={`Lift the freeze: ${scopeText(lifting)}`}
          act={w.lift}
          does="freezes.delete"
          input={{ id: lifting.id }}
          says={w.lifted}
          onClose={() => setLifting(undefined)}
        >
          <p>
            Schedules go on with their next time. Single times, retries and backfills that were held go on
            now.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** The freezes that hold a task, or will. */
export function FrozenNotes({ task }: { task: Task }) {
  const { act } = useMe();
  const { data } = useCall("freezes.list", {});
  const lift = useAct((id: string) => call("freezes.delete", { id }), {
    onDone: () => notify("ok", w.lifted),
  });
  const its = data?.freezes.filter((one) => covers(one, task)) ?? [];
  return its.map((freeze) => (
    <p key={freeze.id} className="note" data-tone="warn">
      <span>
        {freeze.active ? `Frozen: ${scopeText(freeze)}` : `To be frozen: ${scopeText(freeze)}`},{" "}
        <When freeze={freeze} />
        {freeze.by === undefined ? "" : `, ${words.by(freeze.by)}`}
        {freeze.note === undefined ? "" : `: ${freeze.note}`}
      </span>{" "}
      {act && freeze.tasks?.length === 1 ? (
        <Button onClick={() => lift.mutate(freeze.id)}>{w.lift}</Button>
      ) : (
        <Link href="/freezes">{w.title}</Link>
      )}
    </p>
  ));
}

interface NewProps {
  tasks?: readonly Named[];
  /** The owner that is proposed. */
  owner?: string;
  onClose: () => void;
}

/** Freezes a scope, or the tasks that are given: now or from a time, until a time, or in recurring windows. */
export function NewFreeze({ tasks, owner = "", onClose }: NewProps) {
  const zone = useZone();
  const [scope, setScope] = useState<keyof typeof w.scopes>("owner");
  const [name, setName] = useState(owner);
  const [kind, setKind] = useState<keyof typeof w.kinds>("once");
  const [times, setTimes] = useState({ from: "", until: "" });
  const [begins, setBegins] = useState<Pattern>({ week: [], month: [], times: ["18:00"] });
  const [length, setLength] = useState("2h");
  const [note, setNote] = useState("");
  const what = tasks ? { tasks: tasks.map(refOf) } : scope === "all" ? { all: true } : { [scope]: name };
  const at = (field: "from" | "until") => times[field] && { [field]: isoTime(typedTime(times[field], zone)) };
  const when =
    kind === "once"
      ? { ...at("from"), ...at("until") }
      : { schedule: withRows({}, withPattern({ cron: "", timezone: zone }, begins)) as never, for: length };
  const time = (field: "from" | "until") => (
    <TimeField
      label={w.timeFields[field](zone)}
      hint={w.timeHints[field]}
      path={field}
      isAhead
      value={times[field]}
      onSet={(to) => setTimes({ ...times, [field]: to })}
    />
  );
  const isNamed = tasks !== undefined || scope === "all" || name !== "";
  return (
    <Confirm
      title="Freeze tasks"
      act={w.freeze}
      does="freezes.put"
      input={{ ...what, ...when, ...(note && { note }) }}
      shows={isNamed && (kind === "once" || length !== "")}
      says="The freeze holds."
      onClose={onClose}
    >
      <p>What falls due meanwhile is skipped with the reason frozen. Open runs go on.</p>
      {tasks ? null : <ScopeField label="What" scopes={w.scopes} value={scope} onSet={setScope} />}
      {tasks || scope === "all" ? null : (
        <TextField
          label={w.scopes[scope]}
          path={scope}
          of={scope}
          required
          most={128}
          value={name}
          onSet={setName}
        />
      )}
      <div className="chips">
        <Chips
          names={Object.keys(w.kinds) as (keyof typeof w.kinds)[]}
          text={(name) => w.kinds[name]}
          chosen={kind}
          onPick={setKind}
        />
      </div>
      {kind === "once" ? (
        <>
          {time("from")}
          {time("until")}
        </>
      ) : (
        <>
          <Days pattern={begins} onEdit={setBegins} />
          <TextField
            label="Each takes"
            hint={`For example 2h. Windows begin at the times above (${zone}).`}
            path="for"
            required
            value={length}
            onSet={setLength}
          />
        </>
      )}
      <TextField label="Note" value={note} onSet={setNote} />
    </Confirm>
  );
}
