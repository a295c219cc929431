import type { Task, TaskInput } from "@carillon/sdk";
import { useEffect, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { ApiError, call, type Named, refOf, shortName, taskPath } from "../lib/api.js";
import { type Draft, definitionOf, joined, pick } from "../lib/definition.js";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useAct, useCall } from "../lib/query.js";
import { done, formerOf } from "../lib/undo.js";
import { forget } from "../lib/unsaved.js";
import { FieldTable, labelOf } from "../parts/changed.js";
import { Form } from "../parts/form.js";
import { notify } from "../parts/notices.js";
import { ErrorNote, Loaded, PageHead, Panel } from "../parts/page.js";
import { EditForm } from "./edit-form.js";
import { EditPreview, usePreview } from "./edit-preview.js";
import "./edit.css";
import { Button, Chips } from "../parts/button.js";

const DONE = {
  created: "The task is stored.",
  updated: "The change is stored.",
  unchanged: "Nothing was different.",
};

const NEW: Draft = {
  id: "",
  queue: "",
  type: "",
  schedule: { cron: "0 9 * * 1-5", timezone: Intl.DateTimeFormat().resolvedOptions().timeZone },
  payload: {},
};

/** Changes a stored task, or defines a new one, which may begin as a copy: `/tasks/new?queue=q&owner=o&id=t`. */
export default function Edit({ params }: PageProps) {
  const [like] = useSearchParams();
  if (params["id"] !== undefined) return <EditStored name={params as unknown as Named} />;
  if (!like.has("id")) return <Editor begun={NEW} />;
  return <Copy of={Object.fromEntries(like) as unknown as Named} />;
}

function Copy({ of }: { of: Named }) {
  const task = useCall("tasks.get", refOf(of), { refresh: false });
  return <Loaded of={task}>{(task) => <Editor begun={{ ...definitionOf(task), id: "" }} />}</Loaded>;
}

function EditStored({ name }: { name: Named }) {
  const task = useCall("tasks.get", refOf(name));
  return <Loaded of={task}>{(task) => <Editor latest={task} begun={definitionOf(task)} />}</Loaded>;
}

/** @param latest the task as it is stored now; it may be newer than the first read @param begun what is in the form at first */
function Editor({ latest, begun }: { latest?: Task; begun: Draft }) {
  const { define } = useMe();
  const [base, setBase] = useState(latest);
  const [text, setText] = useState(() => pretty(begun));
  const [asJson, setAsJson] = useState(false);
  const [, navigate] = useLocation();
  const draft = parse(text);
  const isOld = latest !== undefined && base !== undefined && latest.revision !== base.revision;
  const preview = usePreview(draft);
  const both = isOld && draft ? joined(definitionOf(base), definitionOf(latest), draft) : undefined;
  const [note, setNote] = useState<string>();
  const goOn = (to: Draft) => {
    setBase(latest);
    setText(pretty(to));
  };
  useEffect(() => {
    if (both?.both.length !== 0) return;
    goOn(both.draft);
    setNote(
      `${latest?.updatedBy ?? "Someone else"} has changed this task since you opened it: ${both.theirs.map(labelOf).join(", ")}. It is in this form now, together with what you wrote.`,
    );
  });
  const put = useAct(
    ({ over, draft }: { over: Task | undefined; draft: Draft | undefined }) => {
      const task = draft as unknown as TaskInput;
      return over
        ? call("tasks.replace", { ...refOf(over), task, ifRevision: over.revision })
        : call("tasks.put", { task, ifRevision: "absent" });
    },
    {
      quiet: true,
      onDone: async (put) => {
        forget();
        navigate(taskPath(put.task));
        for (const { message } of put.warnings) notify("warn", message);
        done(DONE[put.outcome], await formerOf(put));
      },
    },
  );
  const lost = put.error instanceof ApiError && put.error.field === "ifRevision";
  return (
    <Form onSubmit={() => put.mutate({ over: base, draft })} refused={put.error ?? preview.error}>
      <PageHead title={base ? `Edit ${shortName(base)}` : "New task"}>
        <Link className="button" href={base ? taskPath(base) : "/tasks"}>
          Cancel
        </Link>
        {define ? (
          <Button type="submit" look="main" disabled={draft === undefined || put.isPending || isOld}>
            Save
          </Button>
        ) : null}
      </PageHead>
      <div className="stack">
        {put.error && !lost ? <ErrorNote error={put.error} /> : null}
        {note === undefined ? null : (
          <p className="note" data-tone="warn" role="status">
            {note}
          </p>
        )}
        {latest && both && both.both.length > 0 ? (
          <section className="note" data-tone="warn" role="alert">
            <h2>{`${latest.updatedBy ?? "Someone else"} has changed the same as you since you opened this task.`}</h2>
            <FieldTable
              before={pick(definitionOf(latest), both.both)}
              after={pick(both.draft, both.both)}
              columns={["Field", "As it is stored now", "What you wrote"]}
            />
            <Button onClick={() => goOn({ ...both.draft, ...pick(definitionOf(latest), both.both) })}>
              Take theirs
            </Button>
            <Button onClick={() => put.mutate({ over: latest, draft: both.draft })}>
              Store mine over it
            </Button>
          </section>
        ) : null}
        <div className="panels">
          <Panel
            title="Definition"
            end={
              <div className="chips">
                <Chips
                  names={["form", "json"] as const}
                  text={(name) => (name === "form" ? "Form" : "JSON")}
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
                  aria-label="JSON"
                  aria-invalid={draft === undefined}
                  spellCheck={false}
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                />
              ) : (
                <EditForm
                  key={JSON.stringify(base?.payload)}
                  draft={draft}
                  isNew={!base}
                  onEdit={(to) => {
                    put.reset();
                    setText(pretty(to));
                  }}
                />
              )}
              {draft === undefined ? <p className="note">This is not a JSON object yet.</p> : null}
            </div>
          </Panel>
          {draft === undefined ? null : (
            <EditPreview preview={preview} stored={base ? definitionOf(base) : undefined} />
          )}
        </div>
      </div>
    </Form>
  );
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
