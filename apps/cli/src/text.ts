/** Makes control characters visible, so that stored text cannot control the terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (found) => {
    const escaped = JSON.stringify(found).slice(1, -1);
    return escaped === found ? `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}` : escaped;
  });
}

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export type Paint = (colour: keyof typeof COLOURS, text: string) => string;

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

/** Colours only for eyes: a terminal that did not ask for none. */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const coloured = stream.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  return coloured ? (colour, text) => `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : (_, text) => text;
}

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly right?: boolean;
  readonly colour?: (row: Row) => keyof typeof COLOURS | undefined;
}

/**
 * Aligned columns. `widths` is kept by the caller between the pages of one listing, so that later pages line up
 * with the first, whose call prints the header.
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  paint: Paint,
  widths: number[] = [],
): string {
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const first = widths.length === 0;
  columns.forEach(({ title }, i) => {
    widths[i] = Math.max(widths[i] ?? title.length, ...cells.map((line) => line[i]?.length ?? 0));
  });
  const pad = (text: string, i: number) =>
    columns[i]?.right ? text.padStart(widths[i] ?? 0) : text.padEnd(widths[i] ?? 0);
  const lines = cells.map((line, r) =>
    line
      .map((cell, i) => {
        const colour = columns[i]?.colour?.(rows[r] as Row);
        return colour ? paint(colour, pad(cell, i)) : pad(cell, i);
      })
      .join("  ")
      .trimEnd(),
  );
  const header = columns.map(({ title }, i) => paint("bold", pad(title, i))).join("  ");
  return `${[...(first ? [header.trimEnd()] : []), ...lines].join("\n")}\n`;
}

/** Names and values, one per line; names without a value are left out. */
export function facts(entries: readonly (readonly [string, string | undefined])[], paint: Paint): string {
  const shown = entries.filter((entry): entry is readonly [string, string] => Boolean(entry[1]));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${paint("bold", name.padEnd(width))}  ${printable(value)}\n`).join("");
}
