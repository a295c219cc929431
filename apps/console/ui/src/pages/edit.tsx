import type { Task, TaskInput } from "@carillon/sdk";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { ApiError, call, type Named, refOf, shortName, taskPath } from "../lib/api.js";
import { type Draft, definitionOf } from "../lib/definition.js";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useAct, useCall } from "../lib/query.js";
import { forget } from "../lib/unsaved.js";
import { Form } from "../parts/form.js";
import { notify } from "../parts/notices.js";
import { ErrorNote, Loaded, PageHead, Panel } from "../parts/page.js";
import { words } from "../words.js";
import { EditForm } from "./edit-form.js";
import { EditPreview } from "./edit-preview.js";
import "./edit.css";
import { Button, Chips } from "../parts/button.js";

const w = words.edit;

const NEW: Draft = {
  id: "",
  queue: "",
  type: "",
  schedule: { cron: "0 9 * * 1-5", timezone: Intl.DateTimeFormat().resolvedOptions().timeZone },
  payload: {},
};

/** Changes a stored task, or defines a new one. */
export default function Edit({ params }: PageProps) {
  return params["id"] === undefined ? <Editor /> : <EditStored name={params as unknown as Named} />;
}

function EditStored({ name }: { name: Named }) {
  const task = useCall("tasks.get", refOf(name));
  return <Loaded of={task}>{(task) => <Editor latest={task} />}</Loaded>;
}

/** @param latest the task as it is stored now; it may be newer than the first read */
function Editor({ latest }: { latest?: Task }) {
  const { define } = useMe();
  const [base, setBase] = useState(latest);
  const jitter = useSearchParams()[0].get("jitter");
  const [text, setText] = useState(() => pretty(latest ? proposed(definitionOf(latest), jitter) : NEW));
  const [asJson, setAsJson] = useState(false);
  const [, navigate] = useLocation();
  const draft = parse(text);
  const conflict = latest !== undefined && base !== undefined && latest.revision !== base.revision;
  const put = useAct(
    (over: Task | undefined) => {
      const task = draft as unknown as TaskInput;
      return over
        ? call("tasks.replace", { ...refOf(over), task, ifRevision: over.revision })
        : call("tasks.put", { task, ifRevision: "absent" });
    },
    {
      quiet: true,
      onDone: ({ task, outcome, warnings }) => {
        notify("ok", w.done[outcome]);
        for (const { message } of warnings) notify("warn", message);
        forget();
        navigate(taskPath(task));
      },
    },
  );
  const lost = put.error instanceof ApiError && put.error.field === "ifRevision";
  return (
    <Form onSubmit={() => put.mutate(base)}>
      <PageHead title={base ? w.title(shortName(base)) : w.newTitle}>
        <Link className="button" href={base ? taskPath(base) : "/tasks"}>
          {words.cancel}
        </Link>
        {define ? (
          <Button type="submit" look="main" disabled={draft === undefined || put.isPending || conflict}>
            {w.save}
          </Button>
        ) : null}
      </PageHead>
      <div className="stack">
        {put.error && !lost ? <ErrorNote error={put.error} /> : null}
        {conflict ? (
          <Conflict
            theirs={latest}
            mine={text}
            onMine={() => put.mutate(latest)}
            onTheirs={() => {
              forget();
              setBase(latest);
              setText(pretty(definitionOf(latest)));
            }}
          />
        ) : null}
        <div className="panels">
          <Panel
            title={w.definition}
            end={
              <div className="chips">
                <Chips
                  names={["form", "json"] as const}
                  text={(name) => w[name]}
                  chosen={asJson ? "json" : "form"}
                  onPick={(name) => setAsJson(name === "json")}
                  disabled={draft === undefined ? ["form"] : []}
                />
              </div>
            }
          >
            <div className="body">
              {asJson || draft === undefined ? (
                <textarea
                  className="input json"
                  aria-label={w.json}
                  aria-invalid={draft === undefined}
                  spellCheck={false}
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                />
              ) : (
                <EditForm draft={draft} isNew={!base} onEdit={(to) => setText(pretty(to))} />
              )}
              {draft === undefined ? <p className="note">{w.noJson}</p> : null}
            </div>
          </Panel>
          {draft === undefined ? null : (
            <EditPreview draft={draft} stored={base ? definitionOf(base) : undefined} />
          )}
        </div>
      </div>
    </Form>
  );
}

interface ConflictProps {
  theirs: Task;
  mine: string;
  onMine: () => void;
  onTheirs: () => void;
}

/** Shown if someone else changed the task meanwhile: both definitions, and a choice between them. */
function Conflict({ theirs, mine, onMine, onTheirs }: ConflictProps) {
  const stored = pretty(definitionOf(theirs));
  return (
    <section className="note" data-tone="warn" role="alert">
      <h2>{w.conflict(theirs.updatedBy)}</h2>
      <div className="panels">
        <div className="stack">
          <h3>{w.theirs}</h3>
          <Marked text={stored} other={mine} />
          <Button onClick={onTheirs}>{w.takeTheirs}</Button>
        </div>
        <div className="stack">
          <h3>{w.mine}</h3>
          <Marked text={mine} other={stored} />
          <Button onClick={onMine}>{w.takeMine}</Button>
        </div>
      </div>
    </section>
  );
}

/** A text in which the lines that the other does not have stand out. */
function Marked({ text, other }: { text: string; other: string }) {
  const known = new Set(other.split("\n"));
  return (
    <pre>
      {text.split("\n").map((line, i) => {
        const Line = known.has(line) ? "span" : "mark";
        // biome-ignore lint/suspicious/noArrayIndexKey: lines may repeat, and do not move
        return <Line key={i}>{`${line}\n`}</Line>;
      })}
    </pre>
  );
}

/** The definition with the jitter that the address proposes; it is stored only when saved. */
function proposed(draft: Draft, jitter: string | null): Draft {
  return jitter === null ? draft : { ...draft, schedule: { ...(draft["schedule"] as Draft), jitter } };
}

function pretty(draft: Draft): string {
  return JSON.stringify(draft, null, 2);
}

function parse(text: string): Draft | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Draft)
      : undefined;
  } catch {
    return undefined;
  }
}
