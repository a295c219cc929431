import { setTimeout as pause } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";

/** Longest wait for Redis in a scrape, in ms; metrics that need it are then omitted. */
const WAIT_AT_MOST = 1_000;

/** The result, if it arrives within a second; undefined if it does not, or is an error. Never throws. */
export async function withinASecond<T>(ask: () => Promise<T>): Promise<T | undefined> {
  const late = pause(WAIT_AT_MOST, undefined, { ref: false });
  return Promise.race([ask(), late]).catch(() => undefined);
}

/** Shares one reading among all callers while it is in progress: the metrics of a scrape, and concurrent scrapes. */
export function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

type Labels = Readonly<Record<string, string>>;

/** Declares metrics whose values are read at each scrape; one without values is omitted. */
export function scraped<T>(registers: Registry[], read: () => Promise<T>) {
  return (
    kind: "gauge" | "counter",
    name: string,
    help: string,
    labelNames: string[],
    values: (found: T) => readonly (readonly [labels: Labels, value: number])[],
  ): void => {
    const Kind = kind === "gauge" ? Gauge : Counter;
    new Kind({
      name,
      help: `${help} Each node reports the same: take the maximum, not the sum.`,
      labelNames,
      registers,
      async collect(this: Gauge | Counter) {
        const found = values(await read());
        // No await from here on, so that two concurrent scrapes both get complete values.
        this.reset();
        // A reset metric without labels is 0.
        if (labelNames.length === 0) this.remove();
        for (const [labels, value] of found) this.inc(labels, value);
      },
    });
  };
}
