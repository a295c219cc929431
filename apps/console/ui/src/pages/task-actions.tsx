import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { useLocation } from "wouter";
import { refOf, runPath, shortName } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { isoTime, typedTime, useZone } from "../lib/time.js";
import { Check, Confirm, Field, Select, TextField, TimeField } from "../parts/confirm.js";
import { NewFreeze } from "../parts/freeze.js";
import { notify } from "../parts/notices.js";
import { PayloadField } from "../parts/payload-field.js";
import { words } from "../words.js";

export type Action = "trigger" | "pause" | "resume" | "freeze" | "backfill" | "delete";

interface Props {
  task: Task;
  onClose: () => void;
}

const w = words.task;

/** The dialog of an action on one task. */
export function TaskDialog({ action, ...props }: Props & { action: Action }) {
  const dialogs = {
    trigger: Trigger,
    pause: Pause,
    resume: Resume,
    freeze: Freeze,
    backfill: Backfill,
    delete: Delete,
  };
  const { [action]: Shown } = dialogs;
  return <Shown {...props} />;
}

function Trigger({ task, onClose }: Props) {
  const { define } = useMe();
  const [overlap, setOverlap] = useState<keyof typeof w.overlaps>("");
  const [other, setOther] = useState(false);
  const [payload, setPayload] = useState<unknown>(task.payload);
  const [, navigate] = useLocation();
  return (
    <Confirm
      title={`Run ${shortName(task)} now`}
      act={w.trigger}
      does="tasks.trigger"
      input={{ ...refOf(task), ...(overlap && { overlap }), ...(other && { payload }) }}
      onDone={(done) => {
        if (done.outcome === "enqueued") navigate(runPath(done.run));
        else notify("ok", w.waitsForRun);
      }}
      onClose={onClose}
    >
      <Field label={w.overlap} hint={w.overlapHint}>
        <Select value={overlap} options={w.overlaps} onSet={setOverlap} />
      </Field>
      {define ? <Check label="With another payload" checked={other} onSet={setOther} /> : null}
      {other ? (
        <PayloadField
          queue={task.queue}
          type={task.type}
          hint="For this run only. The task keeps its own."
          value={payload}
          onEdit={setPayload}
        />
      ) : null}
    </Confirm>
  );
}

function Pause({ task, onClose }: Props) {
  const [note, setNote] = useState("");
  const [cancelQueued, setCancelQueued] = useState(false);
  const [until, setUntil] = useState("");
  const zone = useZone();
  return (
    <Confirm
      title={w.pauseTitle(shortName(task))}
      act={w.pause}
      does="tasks.pause"
      input={{
        ...refOf(task),
        ...(note && { note }),
        ...(until ? { until: isoTime(typedTime(until, zone)) } : { cancelQueued }),
      }}
      says="The task is paused."
      onClose={onClose}
    >
      <TextField
        label={w.note}
        hint="Shown wherever the pause shows: in lists, with skips, and by explain."
        value={note}
        onSet={setNote}
      />
      <TimeField
        label={`Until (${zone})`}
        hint="Empty: until someone resumes it. With a time: what falls due meanwhile is skipped as frozen."
        path="until"
        isAhead
        value={until}
        onSet={setUntil}
      />
      {until === "" ? (
        <Check
          label="Also cancel runs that wait for a worker"
          checked={cancelQueued}
          onSet={setCancelQueued}
        />
      ) : null}
    </Confirm>
  );
}

function Resume({ task, onClose }: Props) {
  const [missed, setMissed] = useState<keyof typeof w.missedRules>("skip");
  return (
    <Confirm
      title={`Resume ${shortName(task)}`}
      act={w.resume}
      does="tasks.resume"
      input={{ ...refOf(task), missed }}
      says={w.resumed}
      onClose={onClose}
    >
      <Field label={w.missed} hint={`Its catch-up policy: ${words.edit.catchUps[task.catchUp]}.`}>
        <Select value={missed} options={w.missedRules} onSet={setMissed} />
      </Field>
    </Confirm>
  );
}

function Freeze({ task, onClose }: Props) {
  return <NewFreeze tasks={[task]} onClose={onClose} />;
}

function Backfill({ task, onClose }: Props) {
  const zone = useZone();
  const [, navigate] = useLocation();
  const [range, setRange] = useState({ from: "", to: "" });
  const [overlap, setOverlap] = useState<keyof typeof w.overlaps>("");
  const [every, setEvery] = useState("");
  const at = (name: "from" | "to") => range[name] && isoTime(typedTime(range[name], zone));
  const field = (name: "from" | "to") => (
    <TimeField
      label={w[name](zone)}
      path={name}
      required
      value={range[name]}
      onSet={(to) => setRange({ ...range, [name]: to })}
    />
  );
  return (
    <Confirm
      title={`Run past times of ${shortName(task)}`}
      act="Run them"
      does="backfills.start"
      input={{
        ...refOf(task),
        from: at("from"),
        to: at("to"),
        ...(overlap && { overlap }),
        ...(every && { every }),
      }}
      shows={range.from !== "" && range.to !== "" && "first"}
      onDone={({ id }) => id !== undefined && navigate(`/backfills?id=${id}`)}
      onClose={onClose}
    >
      {field("from")}
      {field("to")}
      <Field label={w.overlap} hint={w.overlapHint}>
        <Select value={overlap} options={w.overlaps} onSet={setOverlap} />
      </Field>
      <Field
        label="At most one every"
        hint="For example 10s. Empty: as fast as workers take them."
        path="every"
      >
        <input
          className="input"
          placeholder="10s"
          value={every}
          onChange={(event) => setEvery(event.target.value)}
        />
      </Field>
    </Confirm>
  );
}

function Delete({ task, onClose }: Props) {
  const [, navigate] = useLocation();
  return (
    <Confirm
      title={`Delete ${shortName(task)}`}
      act={w.delete}
      danger
      does="tasks.delete"
      input={refOf(task)}
      onDone={() => navigate("/tasks")}
      onClose={onClose}
    >
      <p>The task is deleted with its runs and its skips. Its definition can be restored for 7 days.</p>
    </Confirm>
  );
}
