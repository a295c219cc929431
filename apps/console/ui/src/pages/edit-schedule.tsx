import type { Draft } from "../lib/definition.js";
import { useCall } from "../lib/query.js";
import {
  canJoin,
  exceptionsOf,
  type Kind,
  kindOf,
  namedIn,
  patternOf,
  rowsOf,
  withExceptions,
  withPattern,
  withRows,
} from "../lib/schedule-form.js";
import { Button } from "../parts/button.js";
import { Field, Select } from "../parts/confirm.js";
import { Chip, Days } from "../parts/days.js";

const KINDS: Readonly<Record<Kind, string>> = {
  cron: "Cron",
  calendar: "Calendar event",
  every: "Interval",
  at: "Once, at",
  manual: "Manual",
};
const EXAMPLES: Record<Exclude<Kind, "manual">, string> = {
  cron: "0 9 * * 1-5",
  calendar: "Mon..Fri *-*-* 09:00",
  every: "10m",
  at: "2030-01-01T09:00:00+01:00",
};
/** Label and hint of each field that is a text. */
const TEXTS = {
  jitter: ["Jitter", "Spreads starts over this time, for example 5m."],
  maxRuns: ["Runs in all", "Then the task is finished."],
  start: ["First time", "For example 2030-01-01T09:00+01:00."],
  end: ["Last time", "In the same form, included."],
  origin: ["Counted from", "For example 2030-01-01T00:10Z: ten minutes past. Empty: the Unix epoch."],
} as const;
/** Fields that every schedule with a time has. */
const LIMITS = ["jitter", "maxRuns", "start", "end"] as const;
/** Kinds that have a clock. */
const OF_ZONES = new Set<Kind>(["cron", "calendar"]);

interface Props {
  schedule: Draft;
  onEdit: (to: Draft) => void;
}

/** A schedule as rows of text, days and times, and its exceptions. All are views of its JSON. */
export function ScheduleFields({ schedule, onEdit }: Props) {
  const rows = rowsOf(schedule);
  if (rows === undefined) return <p className="note">The form cannot show this schedule: edit it as JSON.</p>;
  const [first = {}] = rows;
  const isUnion = schedule["any"] !== undefined;
  const put = (i: number, to: readonly Draft[]) => onEdit(withRows(schedule, rows.toSpliced(i, 1, ...to)));
  return (
    <fieldset className="schedule">
      <legend>Schedule</legend>
      {rows.map((row, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no names
        <fieldset key={i} className={isUnion ? "schedule" : "schedule bare"}>
          {isUnion ? <legend>{`Row ${i + 1}`}</legend> : null}
          <Row
            row={row}
            path={isUnion ? `schedule.any[${i}]` : "schedule"}
            isMember={isUnion}
            onEdit={(to) => put(i, to)}
          />
          {rows.length > 1 ? (
            <Button look="plain" onClick={() => put(i, [])}>
              {`Remove row ${i + 1}`}
            </Button>
          ) : null}
        </fieldset>
      ))}
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {canJoin(first) ? (
        <>
          <Button onClick={() => put(rows.length - 1, [rows.at(-1) ?? first, another(first)])}>
            Add a row of times
          </Button>
          <Exceptions schedule={schedule} onEdit={onEdit} />
        </>
      ) : null}
      {Object.hasOwn(first, "manual") ? null : (
        <div className="pair">
          {LIMITS.map((name) => (
            <Text key={name} name={name} of={schedule} path="schedule" onEdit={onEdit} />
          ))}
        </div>
      )}
    </fieldset>
  );
}

interface TextProps {
  name: keyof typeof TEXTS;
  of: Draft;
  /** Path of what it is a field of. */
  path: string;
  onEdit: (to: Draft) => void;
}

/** A field as text; `maxRuns` becomes a number once it is one. */
function Text({ name, of, path, onEdit }: TextProps) {
  const [label, hint] = TEXTS[name];
  return (
    <Field label={label} hint={hint} path={`${path}.${name}`}>
      <input
        className="input"
        value={String(of[name] ?? "")}
        onChange={({ target }) => onEdit(withField(of, name, target.value))}
      />
    </Field>
  );
}

/** A row that is not there yet, on the clock of another. */
function another(row: Draft): Draft {
  return withField({ calendar: "*-*-01 12:00" }, "timezone", String(row["timezone"] ?? ""));
}

/** With a text of a field; "": without it. */
function withField(of: Draft, field: string, text: string): Draft {
  const { [field]: _, ...rest } = of;
  if (text === "") return rest;
  return { ...of, [field]: field === "maxRuns" && /^\d+$/.test(text) ? Number(text) : text };
}

interface RowProps {
  row: Draft;
  path: string;
  isMember: boolean;
  onEdit: (to: readonly Draft[]) => void;
}

function Row({ row, path, isMember, onEdit }: RowProps) {
  const kind = kindOf(row) as Kind;
  const pattern = patternOf(row);
  const change = (to: Kind) => {
    const { cron: _c, calendar: _l, every: _e, at: _a, manual: _m, timezone, ...rest } = row;
    if (to === "manual") return onEdit([{ manual: true }]);
    const next = { ...rest, [to]: EXAMPLES[to], ...(OF_ZONES.has(to) && timezone ? { timezone } : {}) };
    onEdit(pattern && OF_ZONES.has(to) ? withPattern(next, pattern) : [next]);
  };
  const { manual: _, ...joining } = KINDS;
  return (
    <>
      <div className="pair">
        <Field label="Kind">
          <Select value={kind} options={(isMember ? joining : KINDS) as typeof KINDS} onSet={change} />
        </Field>
        {OF_ZONES.has(kind) ? (
          <Field label="Time zone" path={`${path}.timezone`}>
            <input
              className="input"
              list="zones"
              placeholder="UTC"
              value={String(row["timezone"] ?? "")}
              onChange={({ target }) => onEdit([withField(row, "timezone", target.value)])}
            />
          </Field>
        ) : kind === "every" && row["anchor"] === undefined ? (
          <Text name="origin" of={row} path={path} onEdit={(to) => onEdit([to])} />
        ) : null}
      </div>
      {kind === "manual" ? null : (
        <Field label={KINDS[kind]} hint={`For example ${EXAMPLES[kind]}`} path={`${path}.${kind}`}>
          <input
            className="input mono"
            required
            value={String(row[kind])}
            onChange={({ target }) => onEdit([{ ...row, [kind]: target.value }])}
          />
        </Field>
      )}
      {pattern ? <Days pattern={pattern} onEdit={(to) => onEdit(withPattern(row, to))} /> : null}
    </>
  );
}

/** Shared calendars to switch on and off, and other exceptions as rows. */
function Exceptions({ schedule, onEdit }: Props) {
  const { data } = useCall("calendars.list", {}, { refresh: false });
  const all = exceptionsOf(schedule);
  const put = (to: readonly unknown[]) => onEdit(withExceptions(schedule, to));
  const named = all.map(namedIn).filter((name) => name !== undefined);
  const names = [...new Set([...(data?.calendars ?? []).map(({ name }) => name), ...named])];
  return (
    <>
      {names.length === 0 ? null : (
        <fieldset className="chips">
          <legend className="small">Not on the days of shared calendars</legend>
          {names.map((name) => (
            <Chip
              key={name}
              isOn={named.includes(name)}
              onPick={() =>
                put(
                  named.includes(name)
                    ? all.filter((one) => namedIn(one) !== name)
                    : [...all, { named: name }],
                )
              }
            >
              {name}
            </Chip>
          ))}
        </fieldset>
      )}
      {all.map((one, i) => {
        if (namedIn(one) !== undefined) return null;
        const { calendar } = Object(one) as Draft;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: exceptions have no names
          <div key={i} className="excepted">
            {typeof calendar === "string" ? (
              <Field
                label="Not on"
                hint="Days such as *-12-24 or Sat,Sun, or times."
                path={`schedule.except[${i}]`}
              >
                <input
                  className="input mono"
                  required
                  value={calendar}
                  onChange={({ target }) => put(all.with(i, { ...Object(one), calendar: target.value }))}
                />
              </Field>
            ) : (
              <code>{JSON.stringify(one)}</code>
            )}
            <Button look="plain" onClick={() => put(all.toSpliced(i, 1))}>
              Remove
            </Button>
          </div>
        );
      })}
      <Button onClick={() => put([...all, { calendar: "*-12-24" }])}>Add an exception</Button>
    </>
  );
}
