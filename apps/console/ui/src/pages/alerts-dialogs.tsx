import type { InputTo } from "@carillon/ops";
import type { AlertFormat, AlertKind } from "@carillon/sdk/internal";
import { useState } from "react";
import { useLocation } from "wouter";
import { runPath } from "../lib/api.js";
import { isoTime, typedTime, useZone } from "../lib/time.js";
import { Confirm, Field, ScopeField, Select, TextField, TimeField } from "../parts/confirm.js";
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
  const zone = useZone();
  const [scope, setScope] = useState<keyof typeof w.scopes>("task");
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [kind, setKind] = useState<AlertKind>("failed");
  const [until, setUntil] = useState("");
  const [note, setNote] = useState("");
  const what = scope === "all" ? { all: true } : { [scope]: scope === "kind" ? kind : name };
  const given = {
    ...what,
    ...(scope === "task" && owner && { owner }),
    until: until && isoTime(typedTime(until, zone)),
  };
  return (
    <Confirm
      title="Silence alerts"
      act={w.silence}
      does="silences.put"
      input={{ ...given, ...(note && { note }) }}
      shows={until !== "" && (scope === "all" || scope === "kind" || name !== "")}
      says="The silence holds."
      onClose={onClose}
    >
      <p>Until its end, alerts that match are recorded and not sent.</p>
      <ScopeField label="What" scopes={w.scopes} value={scope} onSet={setScope} />
      {scope === "task" ? (
        <TextField label={w.scopes.owner} path="owner" of="owner" most={128} value={owner} onSet={setOwner} />
      ) : null}
      {scope === "kind" ? (
        <Field label={w.kind}>
          <Select value={kind} options={w.kinds} onSet={setKind} />
        </Field>
      ) : null}
      {scope === "all" || scope === "kind" ? null : (
        <TextField
          label={w.scopes[scope]}
          path={scope}
          of={scope}
          required
          most={128}
          value={name}
          onSet={setName}
        />
      )}
      <TimeField label={`Until (${zone})`} path="until" required isAhead value={until} onSet={setUntil} />
      <TextField label="Note" value={note} onSet={setNote} />
    </Confirm>
  );
}

/** Sends a test alert to a destination; its run shows whether it arrived. */
export function TestAlert({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation();
  const [format, setFormat] = useState<AlertFormat | "">("");
  const [target, setTarget] = useState("");
  return (
    <Confirm
      title="Test a destination"
      act={w.test}
      does="alerts.test"
      input={{ target, ...(format && { format }) }}
      says="The test is on its way."
      onDone={({ run }) => navigate(runPath(run))}
      onClose={onClose}
    >
      <p>Sends one alert. The outcome of its run tells whether it arrived.</p>
      <TextField
        label="URL, address or routing key"
        path="target"
        required
        most={2_048}
        value={target}
        onSet={setTarget}
      />
      <Field label="Format">
        <Select value={format} options={{ "": "by the address", ...w.formats }} onSet={setFormat} />
      </Field>
    </Confirm>
  );
}
