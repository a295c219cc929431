import { type Colour, cut, type Paint, printable } from "./text.js";
import { HERE, LONG_TIMES, shortTimes, type TimeTexts } from "./times.js";

/** The stream that a table is printed to. */
export interface Screen {
  readonly paint: Paint;
  /** Columns of the terminal. Default: not a terminal, so nothing is shortened. */
  readonly width?: number | undefined;
}

export interface Column<Row> {
  readonly title: string;
  /** A field of the row, `-` if it is missing; or a text, with times in a format for the place that the table is printed to. */
  readonly value: (keyof Row & string) | ((row: Row, times: TimeTexts) => string);
  readonly right?: boolean;
  readonly colour?: (row: Row) => Colour | undefined;
  /** On a terminal that is too narrow, columns are left out from the highest rank down. Default 0: never left out. */
  readonly rank?: number;
  /** Shortest width that a cell may be cut to. Default: it is not cut. */
  readonly least?: number;
}

/** Layout that the pages of one listing share. The first page prints the header. */
export interface Layout {
  widths?: number[];
}

const GAP = 2;
/** A terminal that does not know its width has this one. */
const USUAL_WIDTH = 80;

/** The width to print for; undefined: the stream is not a terminal. */
export function widthOf(stream: { isTTY?: boolean; columns?: number }): number | undefined {
  return stream.isTTY === true ? stream.columns || USUAL_WIDTH : undefined;
}

/**
 * Aligned columns. On a terminal times are short, and columns are cut or left out until lines fit; a first line names
 * the zone and the columns left out.
 *
 * @param layout kept by the caller between the pages of one listing
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  screen: Screen,
  layout: Layout = {},
): string {
  const { paint, width } = screen;
  let timed = false;
  const texts = width === undefined ? LONG_TIMES : shortTimes(Date.now(), () => (timed = true));
  const cells = rows.map((row) =>
    columns.map(({ value }) =>
      printable(typeof value === "function" ? value(row, texts) : String(row[value] ?? "-")),
    ),
  );
  const before = layout.widths;
  const natural = columns.map(({ title }, i) =>
    // A column that the first page left out stays out.
    before?.[i] === 0 && title !== ""
      ? 0
      : Math.max(before?.[i] ?? title.length, ...cells.map((line) => line[i]?.length ?? 0)),
  );
  const widths = fit(columns, natural, width, before === undefined);
  layout.widths = widths;
  const line = (texts: readonly string[], colourOf: (column: Column<Row>) => Colour | undefined) => {
    const shown = columns.flatMap((column, i) => {
      const most = widths[i] ?? 0;
      if (most === 0) return [];
      const text = cut(texts[i] ?? "", most);
      const padded = column.right ? text.padStart(most) : text.padEnd(most);
      const colour = colourOf(column);
      return [colour ? paint(colour, padded) : padded];
    });
    return `${shown.join(" ".repeat(GAP)).trimEnd()}\n`;
  };
  const body = cells.map((texts, r) => line(texts, (column) => column.colour?.(rows[r] as Row)));
  if (before !== undefined) return body.join("");
  const header = line(
    columns.map(({ title }) => title),
    () => "bold",
  );
  const left = columns.filter(({ title }, i) => title !== "" && widths[i] === 0).map(({ title }) => title);
  const about = [
    ...(timed ? [`Times: ${HERE}.`] : []),
    ...(left.length > 0 ? [`Left out: ${left.join(", ")}.`] : []),
  ].join(" ");
  return `${about && `${paint("dim", cut(about, width ?? about.length))}\n`}${header}${body.join("")}`;
}

/** The words of an answer that has a list, perhaps a page of one. @param none instead of an empty list */
export function rows<Field extends string, Row>(
  out: Screen & { more(cursor: string | undefined): void },
  field: Field,
  columns: readonly Column<Row>[] | ((rows: readonly Row[]) => readonly Column<Row>[]),
  none: string,
): (
  answer: { readonly [Name in Field]: readonly Row[] } & { readonly cursor?: string | undefined },
) => string {
  return (answer) => {
    out.more(answer.cursor);
    const found = answer[field];
    if (found.length === 0) return `${none}\n`;
    return table(typeof columns === "function" ? columns(found) : columns, found, out);
  };
}

/** Widths that fit the terminal; 0: left out. Text without rank is cut last, so that a name stays whole as long as it can. */
function fit<Row>(
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number | undefined,
  mayDrop: boolean,
): number[] {
  const widths = [...natural];
  if (width === undefined) return widths;
  const byRank = columns
    .map(({ rank = 0, least, title }, i) => ({ i, rank, least: Math.max(least ?? Infinity, title.length) }))
    .sort((a, b) => b.rank - a.rank);
  const over = () => {
    const shown = widths.filter((one) => one > 0);
    return shown.reduce((sum, one) => sum + one + GAP, -GAP) - width;
  };
  for (;;) {
    for (const { i, least } of byRank) {
      const room = Math.max(0, (widths[i] ?? 0) - least);
      widths[i] = (widths[i] ?? 0) - Math.min(room, Math.max(0, over()));
    }
    const drop = byRank.find(({ i, rank }) => rank > 0 && widths[i] !== 0);
    if (over() <= 0 || !mayDrop || !drop) break;
    // With one column less there may be room for the others.
    for (const [i, one] of natural.entries()) if (widths[i] !== 0) widths[i] = one;
    widths[drop.i] = 0;
  }
  while (over() > 0 && Math.max(...widths) > 1) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
