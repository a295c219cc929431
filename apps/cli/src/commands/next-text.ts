import { duration, relative } from "@carillon/ops/words";
import type { Forecast } from "../forecast.js";
import { type Column, table } from "../table.js";
import { facts, type Paint, warningText } from "../text.js";
import { localIso, utcIso } from "../times.js";

type Preview = Forecast["preview"];
type Time = Preview["times"][number];

/** Excluded times named after the last one. */
const NAMED = 3;

/** A forecast as one JSON document. `alone`: in the form of a line of a batch, with its warnings. */
export function documentOf({ canonical, description, warnings, preview }: Forecast, alone: boolean): object {
  const { times, exhausted } = preview;
  return {
    canonical,
    description,
    next: times.map(({ utc }) => utc),
    exhausted,
    ...(warnings.length ? { warnings } : {}),
    ...(alone ? {} : detailsOf(preview)),
  };
}

function detailsOf({ times, excluded, notes }: Preview): object {
  const due = times.flatMap((time) => time.due?.utc ?? []);
  return {
    ...(due.length ? { due } : {}),
    notes: [...notes, ...times.flatMap(({ utc, notes }) => notes.map((note) => ({ time: utc, ...note })))],
    excluded: excluded.map(({ utc, by }) => ({ time: utc, by })),
  };
}

export function describe(
  { kind, canonical, description, warnings, preview }: Forecast,
  { from, zone }: { from: number; zone: string | undefined },
  paint: Paint,
): string {
  const head = facts(
    [
      [kind === "any" ? "union" : kind, canonical],
      ["means", description],
      ...warnings.map((warning) => ["warning", warningText(warning)] as const),
      ...preview.notes.map(({ text }) => ["note", text] as const),
    ],
    paint,
  );
  const { times, exhausted } = preview;
  const rows = times.length ? `\n${table(columnsOf(times, from, zone), times, { paint })}` : "";
  return `${head}${rows}${exhausted ? `\n${endText(preview)}` : ""}`;
}

function columnsOf(times: readonly Time[], from: number, zone: string | undefined): Column<Time>[] {
  const columns: Column<Time>[] = [
    { title: "UTC", value: ({ time }) => utcIso(time) },
    { title: "LOCAL", value: ({ time }) => localIso(time, zone) },
    { title: "", value: ({ time }) => relative(time, from) },
  ];
  if (times.some(({ due }) => due !== undefined)) {
    columns.push({
      title: "DUE",
      value: ({ time, due }) => (due ? `${localIso(due.time, zone)} (+${duration(due.time - time)})` : ""),
    });
  }
  if (times.some(({ notes }) => notes.length > 0))
    columns.push({ title: "NOTES", value: ({ notes }) => notes.map(({ text }) => text).join("; ") });
  return columns;
}

function endText({ times, excluded }: Preview): string {
  const end = times.length ? "Nothing follows." : "It never fires again.";
  const last = times.at(-1)?.time ?? Number.NEGATIVE_INFINITY;
  const rest = excluded.filter(({ time }) => time > last);
  if (rest.length === 0) return `${end}\n`;
  const named = rest.slice(0, NAMED).map(({ local, by }) => `${local} (${by})`);
  const more = rest.length > NAMED ? " and more" : "";
  return `${end} Excluded: ${named.join(", ")}${more}.\n`;
}
