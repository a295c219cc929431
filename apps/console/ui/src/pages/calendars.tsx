import { useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall } from "../lib/query.js";
import { fullTime } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { Confirm, Field, TextField } from "../parts/confirm.js";
import { notify } from "../parts/notices.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { Relative } from "../parts/time.js";
import { words } from "../words.js";
import { counted } from "../words-count.js";

const w = words.calendars;

/** Shared calendars: what each excludes, and how many tasks name it. */
export default function Calendars() {
  const { define } = useMe();
  const calendars = useCall("calendars.list", {});
  const [params] = useSearchParams();
  const [open, setOpen] = useState(params.get("open") ?? undefined);
  return (
    <>
      <PageHead title={w.title}>
        {define ? <Button onClick={() => setOpen("")}>{w.add}</Button> : null}
      </PageHead>
      <Panel title="Shared calendars">
        <Loaded of={calendars}>
          {({ calendars }) => (
            <Rows of={calendars} none="There is no shared calendar. A schedule can except one by its name.">
              {({ name, entries, tasks, updated, by }) => (
                <li key={name}>
                  <Button look="plain" data-row onClick={() => setOpen(name)}>
                    {name}
                  </Button>
                  <span>{counted(entries, "entry", "entries")}</span>
                  <span className="soft">
                    {tasks === undefined ? "" : `used by ${counted(tasks, "task", "tasks")}`}
                  </span>
                  <span className="soft end">
                    {words.task.updated} <Relative at={updated} /> {by && by !== "-" ? words.by(by) : ""}
                  </span>
                  <Excluded name={name} />
                </li>
              )}
            </Rows>
          )}
        </Loaded>
      </Panel>
      {open === undefined ? null : <Editor name={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

/** The days that it excludes next: those of a daily schedule that names it. */
function Excluded({ name }: { name: string }) {
  const schedule = { cron: "0 12 * * *", except: [{ named: name }] };
  const { data } = useCall("tasks.validate", { schedule, count: 100 });
  const days = data?.excluded.slice(0, 5) ?? [];
  if (days.length === 0) return null;
  return (
    <span className="wide small soft">
      Excludes next:{" "}
      {days.map(({ nominal }) => fullTime(nominal, "UTC").replace(/, \d\d:.*/, "")).join(" · ")}
    </span>
  );
}

function Editor({ name, onClose }: { name: string; onClose: () => void }) {
  const stored = useCall("calendars.get", name === "" ? undefined : { name }, { refresh: false });
  if (name !== "" && !stored.data) return null;
  return <Form name={name} entries={stored.data?.entries ?? []} onClose={onClose} />;
}

interface FormProps {
  name: string;
  entries: readonly string[];
  onClose: () => void;
}

function Form({ name, entries, onClose }: FormProps) {
  const { define } = useMe();
  const [id, setId] = useState(name);
  const [text, setText] = useState(entries.join("\n"));
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const remove = useAct(() => call("calendars.delete", { name }), { quiet: true, onDone: onClose });
  return (
    <Confirm
      title={name === "" ? w.add : name}
      act={words.edit.save}
      does="calendars.put"
      input={{ name: id, entries: lines }}
      shows={define && id !== ""}
      onDone={({ replanned }) =>
        notify("ok", `Stored; ${counted(replanned, "task has", "tasks have")} a new next time.`)
      }
      error={remove.error}
      busy={!define}
      onClose={onClose}
    >
      {name === "" ? (
        <TextField label="Name" path="name" required most={128} value={id} onSet={setId} />
      ) : null}
      <Field
        label="Entries"
        hint="One a line: a date (2026-12-25) or a calendar event (*-05-01)."
        path="entries"
      >
        <textarea
          className="input"
          readOnly={!define}
          spellCheck={false}
          rows={12}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
      {define && name !== "" ? (
        <Button look="danger" onClick={() => remove.mutate(undefined)}>
          {words.task.delete}
        </Button>
      ) : null}
    </Confirm>
  );
}
