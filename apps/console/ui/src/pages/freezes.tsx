import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { isoTime, typedTime, useZone } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { Confirm, Field, Select, TextField, TimeField } from "../parts/confirm.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { Relative, Time } from "../parts/time.js";
import { words } from "../words.js";

const w = words.freezes;
type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** Current and coming freezes, with scope, author, reason and end. */
export default function Freezes() {
  const { act } = useMe();
  const freezes = useCall("freezes.list", {});
  const [isNew, setNew] = useState(false);
  const [lifting, setLifting] = useState<FreezeView | undefined>();
  return (
    <>
      <PageHead title={w.title}>
        <Link className="button" href="/resume">
          {words.resumePage.title}
        </Link>
        {act ? <Button onClick={() => setNew(true)}>{w.freeze}</Button> : null}
      </PageHead>
      <Panel title={w.list}>
        <Loaded of={freezes}>
          {({ freezes }) => (
            <Rows of={freezes} none={w.none}>
              {(freeze) => (
                <li key={freeze.id}>
                  <strong>{scopeText(freeze)}</strong>
                  <Badge tone={freeze.active ? "warn" : "none"}>{freeze.active ? w.holds : w.later}</Badge>
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
          )}
        </Loaded>
      </Panel>
      {isNew ? <NewFreeze onClose={() => setNew(false)} /> : null}
      {lifting === undefined ? null : <Lift freeze={lifting} onClose={() => setLifting(undefined)} />}
    </>
  );
}

function scopeText({ all, owner, tag, queue }: FreezeView): string {
  if (all) return w.scopes.all;
  const given = { owner, tag, queue };
  const named = (["owner", "tag", "queue"] as const).filter((name) => given[name] !== undefined);
  return named.map((name) => `${w.scopes[name]} ${given[name]}`).join(", ");
}

function When({ freeze: { active, activeUntil, from, until, schedule, length } }: { freeze: FreezeView }) {
  if (schedule !== undefined) {
    return (
      <>
        {w.recurring(length === undefined ? "" : duration(length))} <code>{JSON.stringify(schedule)}</code>
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

function NewFreeze({ onClose }: { onClose: () => void }) {
  const { wide } = useMe();
  const zone = useZone();
  const [scope, setScope] = useState<keyof typeof w.scopes>("owner");
  const [name, setName] = useState("");
  const [until, setUntil] = useState("");
  const [note, setNote] = useState("");
  const { all, ...named } = w.scopes;
  const given = {
    ...(scope === "all" ? { all: true } : { [scope]: name }),
    ...(until && { until: isoTime(typedTime(until, zone)) }),
  };
  return (
    <Confirm
      title={w.newTitle}
      act={w.freeze}
      does="freezes.put"
      input={{ ...given, ...(note && { note }) }}
      shows={scope === "all" || name !== ""}
      says={w.frozen}
      onClose={onClose}
    >
      <p>{w.hint}</p>
      <Field label={w.scope}>
        <Select
          value={scope}
          options={wide ? { ...named, all } : (named as typeof w.scopes)}
          onSet={setScope}
        />
      </Field>
      {scope === "all" ? null : (
        <TextField label={w.scopes[scope]} required most={128} value={name} onSet={setName} />
      )}
      <TimeField label={w.untilField(zone)} hint={w.untilHint} value={until} onSet={setUntil} />
      <TextField label={w.note} value={note} onSet={setNote} />
    </Confirm>
  );
}

function Lift({ freeze, onClose }: { freeze: FreezeView; onClose: () => void }) {
  return (
    <Confirm
      title={w.liftTitle(scopeText(freeze))}
      act={w.lift}
      does="freezes.delete"
      input={{ id: freeze.id }}
      says={w.lifted}
      onClose={onClose}
    >
      <p>{w.liftHint}</p>
    </Confirm>
  );
}
