import { parseArgs } from "node:util";

const LIMIT = 30;

/**
 * Options of a bench: `--smoke`, `--json`, its own numbers and texts, and `--limit`, the minutes after which it gives
 * up, because a bench that waits for something that never comes must end.
 * @param {Record<string, number | [usual: number, smoke: number]>} numbers by name, with the default
 * @param {string[]} texts undefined if not given
 * @returns {any}
 */
export function readOptions(numbers, texts = []) {
  numbers = { limit: [LIMIT, 15], ...numbers };
  const strings = [...Object.keys(numbers), ...texts].map((name) => [name, { type: "string" }]);
  const options = {
    ...Object.fromEntries(strings),
    smoke: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  };
  /** @type {{ values: Record<string, any> }} */
  const { values } = parseArgs({ options });
  const read = Object.entries(numbers).map(([name, fallback]) => {
    const [usual, smoke = usual] = [fallback].flat();
    const value = Number(values[name] ?? (values.smoke ? smoke : usual));
    if (!Number.isFinite(value)) throw new Error(`--${name} is a number, not ${values[name]}.`);
    return [name, value];
  });
  const given = { ...values, ...Object.fromEntries(read) };
  setTimeout(() => {
    console.error(`The bench is not done after ${given.limit} minutes (--limit).`);
    process.exit(1);
  }, given.limit * 60_000).unref();
  return given;
}
