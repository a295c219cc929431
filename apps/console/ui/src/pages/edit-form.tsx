import type { Draft } from "../lib/definition.js";
import { Field, Select } from "../parts/confirm.js";
import { NameInput } from "../parts/name-input.js";
import { PayloadField } from "../parts/payload-field.js";
import { words } from "../words.js";

const w = words.edit;
const KINDS = ["cron", "calendar", "every", "at", "manual"] as const;
type Kind = (typeof KINDS)[number];
const EXAMPLES: Record<Exclude<Kind, "manual">, string> = {
  cron: "0 9 * * 1-5",
  calendar: "Mon..Fri *-*-* 09:00",
  every: "10m",
  at: "2030-01-01T09:00:00+01:00",
};
/** Fields that only some kinds have. */
const OF_ZONES = new Set<Kind>(["cron", "calendar"]);

interface Props {
  draft: Draft;
  isNew: boolean;
  onEdit: (to: Draft) => void;
}

/** The usual fields of a definition. Fields that it does not show stay unchanged; the JSON view shows all. */
export function EditForm({ draft, isNew, onEdit }: Props) {
  const set = (field: string, value: unknown) => {
    const { [field]: _, ...rest } = draft;
    onEdit(value === undefined ? rest : { ...draft, [field]: value });
  };
  const text = (field: string, more: { required?: boolean; readOnly?: boolean } = {}) => (
    <Field key={field} label={w.fields[field as keyof typeof w.fields]}>
      <NameInput
        of={field}
        maxLength={500}
        value={String(draft[field] ?? "")}
        onChange={(event) =>
          set(field, event.target.value === "" && !more.required ? undefined : event.target.value)
        }
        {...more}
      />
    </Field>
  );
  return (
    <div className="form">
      {isNew ? (
        <>
          {text("id", { required: true })}
          {text("owner")}
          {text("queue", { required: true })}
        </>
      ) : null}
      {text("type", { required: true })}
      {text("description")}
      <ScheduleFields schedule={(draft["schedule"] ?? {}) as Draft} onEdit={(to) => set("schedule", to)} />
      <PayloadField
        queue={String(draft["queue"] ?? "")}
        type={String(draft["type"] ?? "")}
        value={draft["payload"] ?? {}}
        onEdit={(to) => set("payload", to)}
      />
      <Field label={w.fields.overlap}>
        <Select
          value={String(draft["overlap"] ?? "skip") as keyof typeof w.overlaps}
          options={w.overlaps}
          onSet={(to) => set("overlap", to)}
        />
      </Field>
      {typeof (draft["catchUp"] ?? "one") === "string" ? (
        <Field label={w.fields.catchUp}>
          <Select
            value={String(draft["catchUp"] ?? "one") as keyof typeof w.catchUps}
            options={w.catchUps}
            onSet={(to) => set("catchUp", to)}
          />
        </Field>
      ) : null}
      <Field label={w.fields.tags} hint={w.tagsHint}>
        <NameInput
          of="tag"
          many
          value={((draft["tags"] ?? []) as string[]).join(" ")}
          onChange={(event) =>
            set(
              "tags",
              event.target.value.split(/[\s,]/).filter((tag, i, all) => tag !== "" || i === all.length - 1),
            )
          }
          onBlur={(event) => set("tags", event.target.value.split(/[\s,]+/).filter(Boolean))}
        />
      </Field>
      <p className="small soft">{w.formHint}</p>
    </div>
  );
}

function ScheduleFields({ schedule, onEdit }: { schedule: Draft; onEdit: (to: Draft) => void }) {
  const kind = KINDS.find((kind) => Object.hasOwn(schedule, kind));
  if (kind === undefined || typeof schedule[kind] === "object") return <p className="note">{w.otherKind}</p>;
  const { cron: _c, calendar: _l, every: _e, at: _a, manual: _m, timezone, ...rest } = schedule;
  return (
    <fieldset className="schedule">
      <legend>{w.fields.schedule}</legend>
      <Field label={w.kind}>
        <Select
          value={kind}
          options={w.kinds}
          onSet={(to) =>
            onEdit(
              to === "manual"
                ? { manual: true }
                : { ...rest, [to]: EXAMPLES[to], ...(OF_ZONES.has(to) && timezone ? { timezone } : {}) },
            )
          }
        />
      </Field>
      {kind === "manual" ? null : (
        <Field label={w.kinds[kind]} hint={w.example(EXAMPLES[kind])}>
          <input
            className="input mono"
            required
            value={String(schedule[kind])}
            onChange={(event) => onEdit({ ...schedule, [kind]: event.target.value })}
          />
        </Field>
      )}
      {OF_ZONES.has(kind) ? (
        <Field label={w.timezone}>
          <input
            className="input"
            list="zones"
            placeholder="UTC"
            value={String(timezone ?? "")}
            onChange={(event) => {
              const { timezone: _, ...others } = schedule;
              onEdit(event.target.value === "" ? others : { ...schedule, timezone: event.target.value });
            }}
          />
        </Field>
      ) : null}
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {kind === "manual" ? null : (
        <Field label={w.jitter} hint={w.jitterHint}>
          <input
            className="input"
            value={String(schedule["jitter"] ?? "")}
            onChange={(event) => {
              const { jitter: _, ...others } = schedule;
              onEdit(event.target.value === "" ? others : { ...schedule, jitter: event.target.value });
            }}
          />
        </Field>
      )}
    </fieldset>
  );
}
