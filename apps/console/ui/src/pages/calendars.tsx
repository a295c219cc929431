import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../lib/api.js";
import { useMay } from "../lib/forms.js";
import { useAct, useCall } from "../lib/query.js";
import { fullTime } from "../lib/time.js";
import { Ask, AskButton } from "../parts/ask.js";
import { Button } from "../parts/button.js";
import { notify } from "../parts/notices.js";
import { PageHead } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { Relative } from "../parts/time.js";

const ENTRIES = { hint: "One a line: a date (2026-12-25) or a calendar event (*-05-01)." };
const stored = ({ replanned }: AnswerTo<"calendars.put">) =>
  notify("ok", `Stored; ${countText(replanned, "task has", "tasks have")} a new next time.`);

/** Shared calendars: what each excludes, and how many tasks name it. */
export default function Calendars() {
  const [params] = useSearchParams();
  const [open, setOpen] = useState(params.get("open") ?? undefined);
  return (
    <>
      <PageHead title="Calendars">
        <AskButton title="New calendar" does="calendars.put" looks={{ entries: ENTRIES }} onDone={stored} />
      </PageHead>
      <Records
        title="Shared calendars"
        list="calendars.list"
        of={({ calendars }) => calendars}
        name={({ name }) => name}
        columns={[
          ({ name }) => (
            <Button look="plain" data-row onClick={() => setOpen(name)}>
              {name}
            </Button>
          ),
          ({ entries }) => countText(entries, "entry", "entries"),
          ({ tasks }) =>
            tasks !== undefined && <span className="soft">{`used by ${countText(tasks, "task")}`}</span>,
          ({ updated, by }) => (
            <span className="soft end">
              changed <Relative at={updated} /> {by && by !== "-" ? `by ${by}` : ""}
            </span>
          ),
          ({ name }) => <Excluded name={name} />,
        ]}
        none="There is no shared calendar. A schedule can except one by its name."
      />
      {open ? <Edit name={open} onClose={() => setOpen(undefined)} /> : null}
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

function Edit({ name, onClose }: { name: string; onClose: () => void }) {
  const { data } = useCall("calendars.get", { name }, { refresh: false });
  const may = useMay("calendars.delete");
  const remove = useAct(() => call("calendars.delete", { name }), { quiet: true, onDone: onClose });
  if (!data) return null;
  return (
    <Ask
      title={name}
      does="calendars.put"
      given={{ name }}
      fields={[
        "entries",
        may && (
          <Button key="delete" look="danger" onClick={() => remove.mutate(undefined)}>
            Delete
          </Button>
        ),
      ]}
      looks={{ entries: { ...ENTRIES, first: data.entries.join("\n") } }}
      onDone={stored}
      error={remove.error}
      onClose={onClose}
    />
  );
}
