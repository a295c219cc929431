import type { InputTo } from "@carillon/ops";
import type { Task } from "@carillon/sdk";
import { useState } from "react";
import type { Draft } from "../lib/definition.js";
import { useCall } from "../lib/query.js";
import { doneToMany } from "../lib/undo.js";
import { Confirm, Field, Select, TextField } from "../parts/confirm.js";
import { words } from "../words.js";
import { ScheduleFields } from "./edit-schedule.js";

const w = words.bulk.edit;
type What = keyof typeof w.whats;
type Changes = Pick<InputTo<"tasks.editMany">, "fields" | "add">;

/** The field that each choice sets. */
const PATHS = {
  cron: "schedule.cron",
  timezone: "schedule.timezone",
  overlap: "overlap",
  catchUp: "catchUp",
  retries: "retry.attempts",
  timeLimit: "timeLimit",
} as const satisfies { [Choice in What]?: string };
const CHOICES = { overlap: words.edit.overlaps, catchUp: words.edit.catchUps } as const;

interface Props {
  /** As `BulkBar` has it. */
  target: Readonly<Record<string, unknown>>;
  /** A selected task: its schedule is the first text of the form. */
  first: Task | undefined;
  onClose: () => void;
  onDone: () => void;
}

/** Changes one field of all selected tasks, after the old and new values and times of each are shown. */
export default function EditMany({ target, first, onClose, onDone }: Props) {
  const [what, setWhat] = useState<What>("cron");
  const [text, setText] = useState("");
  const [path, setPath] = useState("");
  const [schedule, setSchedule] = useState<Draft>({ ...first?.schedule });
  const calendars = useCall("calendars.list", what === "calendar" ? {} : undefined, { refresh: false });
  const changes = changesOf(what, path, text, schedule);
  const isPlain = what !== "payload" && what !== "other";
  const named = isPlain ? undefined : `${what === "payload" ? "payload." : ""}${path}`;
  return (
    <Confirm
      title={w.title}
      act={words.edit.save}
      wide
      does="tasks.editMany"
      input={{ ...target, ...changes }}
      shows={changes !== undefined && "first"}
      busy={changes === undefined}
      onDone={(done) => {
        doneToMany("edit", done);
        onDone();
      }}
      onClose={onClose}
    >
      <Field label={w.what}>
        <Select
          value={what}
          options={w.whats}
          onSet={(to) => {
            setWhat(to);
            setText(to === "overlap" ? "skip" : to === "catchUp" ? "one" : "");
          }}
        />
      </Field>
      {what === "schedule" ? (
        <>
          <ScheduleFields schedule={schedule} onEdit={setSchedule} />
          <p className="small soft">{w.whole}</p>
        </>
      ) : what === "calendar" ? (
        <Field label={w.whats.calendar} path="schedule.except" hint={w.hints.calendar}>
          <Select
            value={text}
            options={Object.fromEntries([
              ["", ""],
              ...(calendars.data?.calendars ?? []).map(({ name }) => [name, name]),
            ])}
            onSet={setText}
          />
        </Field>
      ) : what === "overlap" || what === "catchUp" ? (
        <Field label={w.whats[what]} path={what}>
          <Select value={text} options={CHOICES[what] as Record<string, string>} onSet={setText} />
        </Field>
      ) : (
        <>
          {named === undefined ? null : (
            <TextField
              label={w.path}
              hint={w.hints[what as "payload"]}
              path={(field) => field === "fields" || field === named || field.startsWith(`${named}.`)}
              value={path}
              onSet={setPath}
            />
          )}
          <TextField
            label={named === undefined ? w.whats[what] : w.value}
            hint={named === undefined ? w.hints[what as "cron"] : w.hints.value}
            path={PATHS[what as "cron"]}
            value={text}
            onSet={setText}
          />
        </>
      )}
      <p className="small soft">{w.owner}</p>
    </Confirm>
  );
}

/** Undefined: not complete yet. */
function changesOf(what: What, path: string, text: string, schedule: Draft): Changes | undefined {
  if (what === "schedule") return { fields: { schedule } };
  if (text.trim() === "") return undefined;
  if (what === "calendar") return { add: { "schedule.except": [{ named: text }] } };
  if (what === "retries") return { fields: { [PATHS.retries]: jsonIn(text) } };
  if (what !== "payload" && what !== "other") return { fields: { [PATHS[what]]: text.trim() } };
  if (path.trim() === "") return undefined;
  return { fields: { [`${what === "payload" ? "payload." : ""}${path.trim()}`]: jsonIn(text) } };
}

/** JSON, or else text. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
