import type { AnswerTo } from "@carillon/ops";
import { covers, duration, scopeText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { Link } from "wouter";
import { call, type Named, refOf } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall } from "../lib/query.js";
import { isoTime, typedTime, useZone } from "../lib/time.js";
import { words } from "../words.js";
import { Button } from "./button.js";
import { Confirm, Field, ScopeField, Select, TextField, TimeField } from "./confirm.js";
import { notify } from "./notices.js";
import { Relative, Time } from "./time.js";

const w = words.freezes;
type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** The time of a freeze: its end, or its windows. */
export function When({
  freeze: { active, activeUntil, from, until, humanized, length },
}: {
  freeze: FreezeView;
}) {
  if (humanized !== undefined) {
    return (
      <>
        {w.recurring(length === undefined ? "" : duration(length))} {humanized}
      </>
    );
  }
  const end = active ? activeUntil : until;
  return (
    <>
      {active ? w.since : w.from} <Time at={from} />
      {end === undefined ? (
        ` ${w.untilLifted}`
      ) : (
        <>
          {" "}
          {words.task.until} <Time at={end} /> (<Relative at={end} />)
        </>
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
        {freeze.active ? words.task.frozenNow(scopeText(freeze)) : words.task.frozenLater(scopeText(freeze))},{" "}
        <When freeze={freeze} />
        {freeze.by === undefined ? "" : `, ${words.now.pausedBy(freeze.by)}`}
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

/** Freezes a scope, or the tasks that are given: now or from a time, until a time, or in recurring windows. */
export function NewFreeze({ tasks, onClose }: { tasks?: readonly Named[]; onClose: () => void }) {
  const zone = useZone();
  const [scope, setScope] = useState<keyof typeof w.scopes>("owner");
  const [name, setName] = useState("");
  const [kind, setKind] = useState<keyof typeof w.kinds>("once");
  const [times, setTimes] = useState({ from: "", until: "" });
  const [windows, setWindows] = useState({ cron: "", for: "" });
  const [note, setNote] = useState("");
  const what = tasks ? { tasks: tasks.map(refOf) } : scope === "all" ? { all: true } : { [scope]: name };
  const at = (field: "from" | "until") => times[field] && { [field]: isoTime(typedTime(times[field], zone)) };
  const when =
    kind === "once"
      ? { ...at("from"), ...at("until") }
      : { schedule: { cron: windows.cron, timezone: zone }, for: windows.for };
  const time = (field: "from" | "until") => (
    <TimeField
      label={w.timeFields[field](zone)}
      hint={w.timeHints[field]}
      path={field}
      value={times[field]}
      onSet={(to) => setTimes({ ...times, [field]: to })}
    />
  );
  const text = (field: "cron" | "for") => (
    <TextField
      label={w.windowFields[field](zone)}
      hint={w.windowHints[field]}
      path={field === "cron" ? "schedule" : field}
      required
      value={windows[field]}
      onSet={(to) => setWindows({ ...windows, [field]: to })}
    />
  );
  const isNamed = tasks !== undefined || scope === "all" || name !== "";
  return (
    <Confirm
      title={w.newTitle}
      act={w.freeze}
      does="freezes.put"
      input={{ ...what, ...when, ...(note && { note }) }}
      shows={isNamed && (kind === "once" || (windows.cron !== "" && windows.for !== ""))}
      says={w.frozen}
      onClose={onClose}
    >
      <p>{w.hint}</p>
      {tasks ? null : <ScopeField label={w.scope} scopes={w.scopes} value={scope} onSet={setScope} />}
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
      <Field label={w.kind}>
        <Select value={kind} options={w.kinds} onSet={setKind} />
      </Field>
      {kind === "once" ? (
        <>
          {time("from")}
          {time("until")}
        </>
      ) : (
        <>
          {text("cron")}
          {text("for")}
        </>
      )}
      <TextField label={w.note} value={note} onSet={setNote} />
    </Confirm>
  );
}
