import { parseArgs } from "node:util";

/**
 * What a bench is told: `--smoke`, `--json`, numbers and texts of its own.
 *
 * @param {Record<string, number | [usual: number, smoke: number]>} numbers by name, with what holds where nothing is said
 * @param {string[]} texts undefined where nothing is said
 * @returns {any}
 */
export function readOptions(numbers, texts = []) {
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
  return { ...values, ...Object.fromEntries(read) };
}
