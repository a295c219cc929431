import type { InputTo } from "@carillon/ops";
import type { AlertFormat, AlertKind } from "@carillon/sdk/internal";
import { useState } from "react";
import { useLocation } from "wouter";
import { call, runPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct } from "../lib/query.js";
import { useZone } from "../lib/time.js";
import { Confirm, Field, Select, TextField } from "../parts/confirm.js";
import { HoldsLine } from "../parts/holds.js";
import { notify } from "../parts/notices.js";
import { words } from "../words.js";

const w = words.alerts;

export function silenceText({ all, owner, task, queue, kind }: Partial<InputTo<"silences.put">>): string {
  if (all) return w.scopes.all;
  const given = { owner, task, queue, kind: kind && w.kinds[kind] };
  const named = (["owner", "task", "queue", "kind"] as const).filter((name) => given[name] !== undefined);
  return named.map((name) => `${w.scopes[name]} ${given[name]}`).join(", ");
}

/** Silences alerts: they are recorded, and not delivered. */
export function NewSilence({ onClose }: { onClose: () => void }) {
  const { wide } = useMe();
  const zone = useZone();
  const [scope, setScope] = useState<keyof typeof w.scopes>("task");
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [kind, setKind] = useState<AlertKind>("failed");
  const [until, setUntil] = useState("");
  const [note, setNote] = useState("");
  const { all, ...named } = w.scopes;
  const what = scope === "all" ? { all: true } : { [scope]: scope === "kind" ? kind : name };
  const given = {
    ...what,
    ...(scope === "task" && owner && { owner }),
    until: until && new Date(zone === "UTC" ? `${until}Z` : until).toISOString(),
  };
  const act = useAct(() => call("silences.put", { ...given, ...(note && { note }) }), {
    quiet: true,
    onDone: () => {
      onClose();
      notify("ok", w.holds);
    },
  });
  const text = (label: string, value: string, onSet: (to: string) => void, required = true) => (
    <Field label={label}>
      <input
        className="input"
        required={required}
        maxLength={128}
        value={value}
        onChange={(event) => onSet(event.target.value)}
      />
    </Field>
  );
  return (
    <Confirm
      title={w.silenceTitle}
      act={w.silence}
      by={act}
      onAct={() => act.mutate(undefined)}
      onClose={onClose}
    >
      <p>{w.silenceHint}</p>
      <Field label={w.scope}>
        <Select
          value={scope}
          options={wide ? { ...named, all } : (named as typeof w.scopes)}
          onSet={setScope}
        />
      </Field>
      {scope === "task" ? text(w.scopes.owner, owner, setOwner, false) : null}
      {scope === "kind" ? (
        <Field label={w.kind}>
          <Select value={kind} options={w.kinds} onSet={setKind} />
        </Field>
      ) : null}
      {scope === "all" || scope === "kind" ? null : text(w.scopes[scope], name, setName)}
      <Field label={w.untilField(zone)}>
        <input
          className="input"
          type="datetime-local"
          required
          value={until}
          onChange={(event) => setUntil(event.target.value)}
        />
      </Field>
      <HoldsLine
        preview="silences.preview"
        of={given}
        ready={until !== "" && (scope === "all" || scope === "kind" || name !== "")}
      />
      <TextField label={w.note} value={note} onSet={setNote} />
    </Confirm>
  );
}

/** Sends a test alert to a destination; its run shows whether it arrived. */
export function TestAlert({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation();
  const [format, setFormat] = useState<AlertFormat>("json");
  const [target, setTarget] = useState("");
  const act = useAct(() => call("alerts.test", { format, target }), {
    quiet: true,
    onDone: ({ run }) => {
      onClose();
      notify("ok", w.tested);
      navigate(runPath(run));
    },
  });
  return (
    <Confirm title={w.testTitle} act={w.test} by={act} onAct={() => act.mutate(undefined)} onClose={onClose}>
      <p>{w.testHint}</p>
      <Field label={w.format}>
        <Select value={format} options={w.formats} onSet={setFormat} />
      </Field>
      <Field label={w.target}>
        <input
          className="input"
          required
          maxLength={2_048}
          autoComplete="off"
          value={target}
          onChange={(event) => setTarget(event.target.value)}
        />
      </Field>
    </Confirm>
  );
}
