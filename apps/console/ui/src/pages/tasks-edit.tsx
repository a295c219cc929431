import type { InputTo } from "@carillon/ops";
import type { Task } from "@carillon/sdk";
import { useState } from "react";
import type { Draft } from "../lib/definition.js";
import { useCall } from "../lib/query.js";
import { doneToMany } from "../lib/undo.js";
import { labelOf } from "../parts/changed.js";
import { Confirm, Field, Select, TextField } from "../parts/confirm.js";
import { CATCH_UPS, OVERLAPS } from "../words.js";
import { ScheduleFields } from "./edit-schedule.js";

const WHATS = {
  cron: "Cron expression",
  schedule: "The whole schedule",
  timezone: "Time zone",
  calendar: "Not on the days of a shared calendar",
  overlap: labelOf("overlap"),
  catchUp: labelOf("catchUp"),
  retries: "Attempts of a run",
  timeLimit: "Time limit",
  payload: "A field of the payload",
  other: "Another field",
};
const HINTS: Readonly<Record<string, string>> = {
  cron: "For example 0 9 * * 1-5. Zone, exceptions and limits of each task stay.",
  timezone: "For example Europe/Berlin.",
  retries: "For example 3.",
  timeLimit: "For example 10m.",
  payload: "For example region, or customer.name.",
  other: "As in the JSON of a task: priority, or schedule.jitter.",
};
type What = keyof typeof WHATS;
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
const CHOICES = { overlap: OVERLAPS, catchUp: CATCH_UPS } as const;

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
      title="Edit these tasks"
      act="Save"
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
      <Field label="Change">
        <Select
          value={what}
          options={WHATS}
          onSet={(to) => {
            setWhat(to);
            setText(to === "overlap" ? "skip" : to === "catchUp" ? "one" : "");
          }}
        />
      </Field>
      {what === "schedule" ? (
        <>
          <ScheduleFields schedule={schedule} onEdit={setSchedule} />
          <p className="small soft">It replaces the schedule of each task, with its exceptions and limits.</p>
        </>
      ) : what === "calendar" ? (
        <Field label={WHATS.calendar} path="schedule.except" hint="Each task keeps its other exceptions.">
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
        <Field label={WHATS[what]} path={what}>
          <Select value={text} options={CHOICES[what] as Record<string, string>} onSet={setText} />
        </Field>
      ) : (
        <>
          {named === undefined ? null : (
            <TextField
              label="Field"
              hint={HINTS[what]}
              path={(field) => field === "fields" || field === named || field.startsWith(`${named}.`)}
              value={path}
              onSet={setPath}
            />
          )}
          <TextField
            label={named === undefined ? WHATS[what] : "Value"}
            hint={named === undefined ? HINTS[what] : "JSON, or else text."}
            path={PATHS[what as "cron"]}
            value={text}
            onSet={setText}
          />
        </>
      )}
      <p className="small soft">
        Id, owner and queue are a task's name and cannot be edited: duplicate a task for another owner.
      </p>
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
