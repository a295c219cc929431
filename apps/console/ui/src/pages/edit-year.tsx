import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { dateText, dayOf } from "../lib/time.js";

type Day = NonNullable<AnswerTo<"tasks.validate">["year"]>[number];

interface Props {
  days: readonly Day[];
  timezone: string;
}

/** A year of a schedule, a row each month: days with times, days that exceptions take, and those on which a clock changes. */
export function Year({ days, timezone }: Props) {
  const months = new Map<string, { day: Day; date: number }[]>();
  for (const day of days) {
    const [year, month, date] = dayOf(day.start, timezone).split("-");
    const name = `${year}-${month}`;
    months.set(name, [...(months.get(name) ?? []), { day, date: Number(date) }]);
  }
  const taken = new Map<string, number>();
  for (const { excluded, by = "" } of days) if (excluded > 0) taken.set(by, (taken.get(by) ?? 0) + 1);
  const on = days.filter(({ times }) => times > 0).length;
  if (on + taken.size === 0) return null;
  return (
    <figure className="year">
      <figcaption>
        {`${countText(on, "day has", "days have")} times within a year.`}{" "}
        <span className="soft">Hollow: taken by an exception. Framed: a clock changes.</span>
      </figcaption>
      {[...months].map(([month, days]) => (
        <div key={month} className="month" aria-hidden="true">
          <span className="small soft">
            {dateText(days[0]?.day.start ?? 0, timezone, { month: "short" })}
          </span>
          {Array.from({ length: (days[0]?.date ?? 1) - 1 }, (_, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: days before the first
            <i key={i} />
          ))}
          {days.map(({ day, date }) => (
            <b
              key={date}
              data-is={markOf(day)}
              data-clock={day.notes.length > 0 || undefined}
              title={titleOf(day, timezone)}
            />
          ))}
        </div>
      ))}
      <ul className="small">
        {days.map((day) =>
          day.notes.length === 0 ? null : (
            <li key={day.start} data-tone={day.notes.some(({ code }) => code === "LOST") ? "bad" : undefined}>
              {titleOf(day, timezone)}
            </li>
          ),
        )}
        {[...taken].map(([by, n]) => (
          <li key={by}>{`${countText(n, "day loses", "days lose")} times by ${by}.`}</li>
        ))}
        {days.length < 366 ? <li>The rest of the year takes too long to compute.</li> : null}
      </ul>
    </figure>
  );
}

/** A day's mark: many times, some, none because of an exception, or none. */
function markOf({ times, excluded }: Day): string | undefined {
  if (times > 1) return "many";
  return times === 1 ? "one" : excluded > 0 ? "taken" : undefined;
}

function titleOf({ start, times, excluded, by = "", notes }: Day, timezone: string): string {
  const date = dateText(start, timezone, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
  });
  const parts = [
    times === 0 ? "no time" : times > 24 ? "more than 24 times" : countText(times, "time"),
    ...(excluded > 0 ? [`${excluded > 99 ? "100 or more" : excluded} excluded by ${by}`] : []),
    // The day stands before them.
    ...notes.map(({ text }) => text.replace(/\d{4}-\d\d-\d\dT(\d\d:\d\d)(?::00)?/g, "$1")),
  ];
  return `${date}: ${parts.join("; ")}`;
}
