import type { Warning } from "@carillon/sdk";

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

/** `dryRun` as an option is typed. */
export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** A warning of a put as one line. */
export function warningText({ code, message, remedy }: Warning): string {
  return `${message} ${remedy} [${code}]`;
}

export type Paint = (colour: Colour, text: string) => string;

export type Colour = keyof typeof COLOURS;

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

/**
 * Colours on a terminal, unless NO_COLOR is set. FORCE_COLOR takes precedence: 1, 2, 3, true or empty means colours,
 * anything else none. As node:util styleText decides since Node 22, on every Node.
 */
export function painter(
  stream: { isTTY?: boolean },
  { FORCE_COLOR: forced, NO_COLOR, TERM }: NodeJS.ProcessEnv,
): Paint {
  const coloured =
    forced === undefined
      ? stream.isTTY === true && !NO_COLOR && TERM !== "dumb"
      : ["", "1", "2", "3", "true"].includes(forced);
  return coloured ? (colour, text) => `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : (_, text) => text;
}

/** Names and values, one per line; names without a value are left out. */
export function facts(entries: readonly (readonly [string, string | undefined])[], paint: Paint): string {
  const shown = entries.filter((entry): entry is readonly [string, string] => Boolean(entry[1]));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${paint("bold", name.padEnd(width))}  ${printable(value)}\n`).join("");
}

/** Lines of a text, broken at spaces to fit a terminal, each after `indent`. @param width undefined: not a terminal, one line */
export function wrap(text: string, width: number | undefined, indent = ""): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.trimEnd().split(" ")) {
    const longer = line === indent ? `${indent}${word}` : `${line} ${word}`;
    if (line !== indent && longer.length > (width ?? Number.POSITIVE_INFINITY)) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line].map((one) => `${one}\n`).join("");
}

/** Facts, each with its remedy below it, after an empty line. Neighbours with the same remedy share it. */
export function paragraphs(
  facts: readonly { readonly text: string; readonly remedy: string }[],
  width: number | undefined,
): string {
  return facts
    .map((fact, i) => {
      const gap = fact.remedy === facts[i - 1]?.remedy ? "" : "\n";
      const remedy = fact.remedy === facts[i + 1]?.remedy ? "" : wrap(printable(fact.remedy), width, "  ");
      return `${gap}${wrap(printable(fact.text), width)}${remedy}`;
    })
    .join("");
}

/** `1 run`, `2,000 runs`. Not that of the operations' words: with those, a module that is loaded by itself would share zod's chunk of the bundle. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
