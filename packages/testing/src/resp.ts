/** Number of values that follow a header of each kind; bulk texts and plain lines have none. */
const INNER: Readonly<Record<string, (count: number) => number>> = {
  "*": (count) => count,
  "~": (count) => count,
  ">": (count) => count,
  "%": (count) => 2 * count,
  // An attribute, and the value that it is about.
  "|": (count) => 2 * count + 1,
};
const BULK = "$!=";
const LINE = "+-:_#,(";

/**
 * End of the RESP value (2 or 3) that begins at `start`; undefined if it is not complete yet.
 *
 * @throws if these bytes are not RESP
 */
function endOfValue(bytes: Buffer, start: number): number | undefined {
  let at = start;
  for (let missing = 1; missing > 0; missing--) {
    const end = bytes.indexOf("\r\n", at, "latin1");
    const kind = at < bytes.length ? String.fromCharCode(bytes[at] as number) : undefined;
    if (kind === undefined) return undefined;
    const inner = INNER[kind];
    const bulk = BULK.includes(kind);
    if (!inner && !bulk && !LINE.includes(kind)) throw new TypeError("not RESP");
    if (end < 0) return undefined;
    const count = inner || bulk ? Number(bytes.toString("latin1", at + 1, end)) : 0;
    at = end + 2;
    // A count of -1 stands for a null value.
    if (count > 0 && inner) missing += inner(count);
    if (count >= 0 && bulk) at += count + 2;
    if (at > bytes.length) return undefined;
  }
  return at;
}

/** Cuts a stream of bytes into RESP values. Other bytes are passed on unchanged. */
export class RespReader {
  #rest: Buffer = Buffer.alloc(0);
  #opaque = false;

  read(chunk: Buffer): Buffer[] {
    if (this.#opaque) return [chunk];
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const values: Buffer[] = [];
    let at = 0;
    try {
      for (let end = endOfValue(bytes, at); end !== undefined; end = endOfValue(bytes, at)) {
        values.push(bytes.subarray(at, end));
        at = end;
      }
      this.#rest = bytes.subarray(at);
    } catch {
      this.#opaque = true;
      this.#rest = Buffer.alloc(0);
      values.push(bytes.subarray(at));
    }
    return values;
  }
}
