import { useEffect } from "react";
import type { Draft } from "../lib/definition.js";
import { useCall, useLater } from "../lib/query.js";
import { wordsIn } from "../lib/values.js";
import { labelOf } from "../parts/changed.js";
import { Field, Select } from "../parts/confirm.js";
import { NameInput } from "../parts/name-input.js";
import { PayloadField } from "../parts/payload-field.js";
import { CATCH_UPS, OVERLAPS } from "../words.js";
import { ScheduleFields } from "./edit-schedule.js";

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
  const text = (field: string, more: { required?: boolean; autoFocus?: boolean } = {}) => (
    <Field key={field} label={labelOf(field)} path={field}>
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
  const queue = useQueueOf(isNew ? String(draft["type"] ?? "") : "");
  // biome-ignore lint/correctness/useExhaustiveDependencies: proposes it once for each type
  useEffect(() => {
    if (queue !== undefined && !draft["queue"]) set("queue", queue);
  }, [queue]);
  return (
    <div className="form">
      {isNew ? (
        <>
          {text("id", { required: true, autoFocus: true })}
          {text("owner")}
        </>
      ) : null}
      {text("type", { required: true })}
      {isNew ? text("queue", { required: true }) : null}
      {text("description")}
      <ScheduleFields schedule={(draft["schedule"] ?? {}) as Draft} onEdit={(to) => set("schedule", to)} />
      <PayloadField
        queue={String(draft["queue"] ?? "")}
        type={String(draft["type"] ?? "")}
        value={draft["payload"] ?? {}}
        onEdit={(to) => set("payload", to)}
      />
      <Field label={labelOf("overlap")} path="overlap">
        <Select
          value={String(draft["overlap"] ?? "skip") as keyof typeof OVERLAPS}
          options={OVERLAPS}
          onSet={(to) => set("overlap", to)}
        />
      </Field>
      {typeof (draft["catchUp"] ?? "one") === "string" ? (
        <Field label={labelOf("catchUp")} path="catchUp">
          <Select
            value={String(draft["catchUp"] ?? "one") as keyof typeof CATCH_UPS}
            options={CATCH_UPS}
            onSet={(to) => set("catchUp", to)}
          />
        </Field>
      ) : null}
      <Field label="Tags" hint="With spaces between." path="tags">
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
          onBlur={(event) => set("tags", wordsIn(event.target.value))}
        />
      </Field>
      <p className="small soft">Everything else is in the JSON; the form leaves it as it is.</p>
    </div>
  );
}

/** The queue of stored tasks of a type. */
function useQueueOf(type: string): string | undefined {
  const search = useLater(type);
  const { data } = useCall("tasks.list", search === "" ? undefined : { search, limit: 50 }, {
    refresh: false,
  });
  return data?.tasks.find((task) => task.type === type)?.queue;
}
