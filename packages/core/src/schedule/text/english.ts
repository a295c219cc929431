/** Small pieces of English for descriptions and errors. */

/** `a, b and c`. */
export function list(texts: readonly string[], word = "and"): string {
  if (texts.length < 2) return texts.join("");
  return `${texts.slice(0, -1).join(", ")} ${word} ${texts.at(-1)}`;
}

export function clock(hour: number, minute: number, second: number): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(hour)}:${two(minute)}${second === 0 ? "" : `:${two(second)}`}`;
}

export function ordinal(n: number): string {
  const tens = n % 100;
  const suffix = tens > 10 && tens < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${suffix}`;
}

/** Ascending numbers; three in a row and more become a range: `1, 2 and 5 to 9`. */
export function values(numbers: readonly number[]): string {
  return list(runs(numbers).map(([a, b]) => (a === b ? `${a}` : `${a} to ${b}`)));
}

export function ordinals(numbers: readonly number[]): string {
  return list(runs(numbers).map(([a, b]) => (a === b ? ordinal(a) : `${ordinal(a)} to ${ordinal(b)}`)));
}

function runs(numbers: readonly number[]): Array<[number, number]> {
  const result: Array<[number, number]> = [];
  for (let i = 0; i < numbers.length; i++) {
    const from = numbers[i]!;
    let end = i;
    while (numbers[end + 1] === numbers[end]! + 1) end++;
    if (end - i < 2) {
      result.push([from, from]);
    } else {
      result.push([from, numbers[end]!]);
      i = end;
    }
  }
  return result;
}

/** The step between at least two numbers that start at 0 and divide `whole` evenly; else undefined. */
export function stepOf(numbers: readonly number[], whole: number): number | undefined {
  const step = whole / numbers.length;
  if (numbers.length < 2 || !Number.isInteger(step)) return undefined;
  return numbers.every((n, i) => n === i * step) ? step : undefined;
}
