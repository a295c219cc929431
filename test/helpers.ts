/** A logger for nodes and workers that discards everything. */
export const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A promise, and the function that resolves it. */
export function gate<T = void>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
