import { useState } from "react";
import { daysIn, type Pattern, timesIn, withPattern } from "../lib/schedule-form.js";
import { same } from "../lib/values.js";
import { Field } from "./confirm.js";

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Days and times, for people who know neither cron nor systemd. */
export function Days({ pattern, onEdit }: { pattern: Pattern; onEdit: (to: Pattern) => void }) {
  const { week, month, times } = pattern;
  const toggled = (day: number) =>
    week.includes(day) ? week.filter((one) => one !== day) : [...week, day].sort((a, b) => a - b);
  return (
    <>
      <fieldset className="chips">
        <legend className="small">
          {week.length + month.length === 0 ? "Each day. Choose some:" : "On these days"}
        </legend>
        {WEEKDAYS.map((name, day) => (
          <Chip
            key={name}
            isOn={week.includes(day)}
            onPick={() => onEdit({ week: toggled(day).length === 7 ? [] : toggled(day), month: [], times })}
          >
            {name}
          </Chip>
        ))}
      </fieldset>
      <div className="pair">
        <Typed
          label="Days of the month"
          hint="For example 1, 15. Instead of weekdays."
          value={month.join(", ")}
          read={daysIn}
          onEdit={(to) => onEdit({ week: to.length > 0 ? [] : week, month: to, times })}
        />
        <Typed
          label="Times"
          hint="For example 09:00, 17:30. Other minutes become another row."
          value={times.join(", ")}
          read={timesIn}
          waits={(to) => withPattern({ cron: "" }, { week, month, times: to }).length > 1}
          onEdit={(to) => onEdit({ week, month, times: to })}
        />
      </div>
    </>
  );
}

interface TypedProps<Value> {
  label: string;
  hint: string;
  value: string;
  /** Undefined: the text is not complete yet. */
  read: (text: string) => Value | undefined;
  /** Whether a value is not taken before the field is left, because it changes more than this field. */
  waits?: (to: Value) => boolean;
  onEdit: (to: Value) => void;
}

/** A list as text. What is typed stays as it is until the value changes elsewhere. */
function Typed<Value>({ label, hint, value, read, waits, onEdit }: TypedProps<Value>) {
  const [typed, setTyped] = useState({ text: value, of: value });
  const text = typed.of === value || same(read(typed.text), read(value)) ? typed.text : value;
  const leave = () => {
    const to = read(text);
    if (to !== undefined && !same(to, read(value))) onEdit(to);
    setTyped({ text: value, of: value });
  };
  return (
    <Field label={label} hint={hint}>
      <input
        className="input"
        aria-invalid={read(text) === undefined}
        value={text}
        onChange={({ target }) => {
          setTyped({ text: target.value, of: value });
          const to = read(target.value);
          if (to !== undefined && !waits?.(to)) onEdit(to);
        }}
        onBlur={leave}
        onKeyDown={({ key }) => key === "Enter" && leave()}
      />
    </Field>
  );
}

interface ChipProps {
  isOn: boolean;
  onPick: () => void;
  children: string;
}

export function Chip({ isOn, onPick, children }: ChipProps) {
  return (
    <button type="button" className="chip" aria-pressed={isOn} onClick={onPick}>
      {children}
    </button>
  );
}
