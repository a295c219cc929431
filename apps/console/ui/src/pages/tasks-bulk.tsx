import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { Link } from "wouter";
import type { Named } from "../lib/api.js";
import { later } from "../lib/later.js";
import { useMe } from "../lib/me.js";
import { doneToMany } from "../lib/undo.js";
import { wordsIn } from "../lib/values.js";
import { Button } from "../parts/button.js";
import { Check, Confirm, Field, Select, TextField } from "../parts/confirm.js";
import { NewFreeze } from "../parts/freeze.js";
import { MISSED } from "../words.js";

const EditMany = later(() => import("./tasks-edit.js"));

/** The tasks that a call names: one by one, or by the filter of the list. */
export type Target = Readonly<Record<string, unknown>>;

/** The button of each, and the title of its dialog. */
const VERBS = {
  pause: ["Pause", "Pause these tasks"],
  resume: ["Resume", "Resume these tasks"],
  trigger: ["Run now", "Run these tasks now"],
  tag: ["Tag", "Change tags of these tasks"],
  delete: ["Delete", "Delete these tasks"],
} as const;
type Verb = keyof typeof VERBS;

type Body = Readonly<Record<string, string | undefined>>;

interface Props {
  target: Target;
  /** One of the selected tasks. */
  first: Task | undefined;
  /** Description of the selection. */
  text: string;
  /** Selects all tasks that match the filter; absent: they are selected, or cannot be. */
  onAll: (() => void) | undefined;
  /** The filter of the list, reduced to the fields of a resume plan. */
  plan: Body;
  onClear: () => void;
}

/** Actions for the selected tasks. */
export function BulkBar({ target, first, text, onAll, plan, onClear }: Props) {
  const { act, define } = useMe();
  const [verb, setVerb] = useState<Verb | undefined>();
  const [other, setOther] = useState<"freeze" | "edit">();
  const close = () => setOther(undefined);
  const named = (target["tasks"] ?? []) as readonly Named[];
  const verbs: Verb[] = [
    ...(act ? (["pause", "resume", "trigger"] as const) : []),
    ...(define ? (["tag", "delete"] as const) : []),
  ];
  return (
    <section className="bulk" aria-label="Selected tasks">
      <strong aria-live="polite">{text}</strong>
      {onAll === undefined ? null : (
        <Button look="plain" onClick={onAll}>
          Select all that match the filter
        </Button>
      )}
      {verbs.map((name) => (
        <Button key={name} look={name === "delete" ? "danger" : ""} onClick={() => setVerb(name)}>
          {VERBS[name][0]}
        </Button>
      ))}
      {act && named.length > 0 ? <Button onClick={() => setOther("freeze")}>Freeze</Button> : null}
      {define ? <Button onClick={() => setOther("edit")}>Edit</Button> : null}
      {other === "freeze" ? <NewFreeze tasks={named} onClose={close} /> : null}
      {other === "edit" ? <EditMany target={target} first={first} onClose={close} onDone={onClear} /> : null}
      <Button look="plain" onClick={onClear}>
        Select none
      </Button>
      {verb === undefined ? null : (
        <BulkDialog
          target={target}
          verb={verb}
          plan={plan}
          onClose={() => setVerb(undefined)}
          onDone={onClear}
        />
      )}
    </section>
  );
}

interface DialogProps {
  target: Target;
  verb: Verb;
  plan: Body;
  onClose: () => void;
  onDone: () => void;
}

/** Shows first how many tasks it concerns, and which. */
function BulkDialog({ target, verb, plan, onClose, onDone }: DialogProps) {
  const [note, setNote] = useState("");
  const [missed, setMissed] = useState<keyof typeof MISSED.choices>(MISSED.first);
  const [tags, setTags] = useState({ add: "", remove: "" });
  const [sure, setSure] = useState(false);
  const [text, title] = VERBS[verb];
  const name = `tasks.${verb}Many` as const;
  const search = new URLSearchParams(
    Object.entries(plan).filter((entry): entry is [string, string] => !!entry[1]),
  );
  const given = {
    pause: note === "" ? {} : { note },
    resume: { missed },
    trigger: {},
    tag: { add: wordsIn(tags.add), remove: wordsIn(tags.remove) },
    delete: {},
  }[verb];
  const ready = verb !== "tag" || wordsIn(`${tags.add} ${tags.remove}`).length > 0;
  const unsure = verb === "delete" && !sure;
  return (
    <Confirm
      title={title}
      act={text}
      danger={verb === "delete"}
      does={name}
      input={{ ...target, ...given }}
      onDone={(done) => {
        doneToMany(verb, done);
        onDone();
      }}
      shows={ready && "first"}
      busy={!ready || unsure}
      onClose={onClose}
    >
      {verb === "pause" ? (
        <TextField
          label="Note"
          path="note"
          hint="With it, the same tasks can be resumed later."
          value={note}
          onSet={setNote}
        />
      ) : null}
      {verb === "resume" ? (
        <>
          <Field label={MISSED.label} path="missed">
            <Select value={missed} options={MISSED.choices} onSet={setMissed} />
          </Field>
          <Link href={`/resume${search.size === 0 ? "" : `?${search}`}`}>
            See what was missed, and run it at a rate
          </Link>
        </>
      ) : null}
      {verb === "tag"
        ? (["add", "remove"] as const).map((name) => (
            <TextField
              key={name}
              label={`Tags to ${name}`}
              path={name}
              of="tag"
              many
              value={tags[name]}
              onSet={(to) => setTags({ ...tags, [name]: to })}
            />
          ))
        : null}
      {verb === "delete" ? (
        <Check label="Yes, with their runs and skips" checked={sure} onSet={setSure} />
      ) : null}
    </Confirm>
  );
}
