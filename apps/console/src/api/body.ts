import { isCarillonError } from "@carillon/sdk";
import type { Ctx, Middleware } from "../context.js";
import { RequestError } from "../errors.js";

const MAX_BODY_BYTES = 512 * 1024;
/** `fatal`, because bytes that are not UTF-8 would otherwise be stored as replacement characters. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Reads a body, once, which must be JSON. Without one, `c.var.body` is undefined. Errors never quote the body. */
export const jsonBody: Middleware = async (c, next) => {
  if (c.var.body !== undefined) return next();
  const bytes = await readBody(c, MAX_BODY_BYTES);
  if (bytes.length > 0) {
    const text = textOf(c, bytes);
    c.set("body", parse(text));
    // Bull Board's handlers read the body again.
    Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
  }
  return next();
};

/** @throws `RequestError` 413 */
export async function readBody(c: Ctx, limit: number): Promise<Buffer> {
  const tooLarge = () =>
    new RequestError(413, `larger than ${limit} bytes.`, {
      field: "body",
      remedy: "Store the data elsewhere and send a reference to it.",
    });
  if (Number(c.req.header("content-length") ?? 0) > limit) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of c.req.raw.body ?? []) {
      size += chunk.length;
      if (size > limit) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (isCarillonError(error)) throw error;
    throw new RequestError(400, "the body could not be read.", { field: "body", cause: error });
  }
  return Buffer.concat(chunks);
}

/** @throws `RequestError` 415 */
function textOf(c: Ctx, bytes: Buffer): string {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new RequestError(415, "a body must be JSON.", {
      field: "Content-Type",
      remedy: "Send `Content-Type: application/json`.",
    });
  }
  if (/charset *= *"?(?!utf-8)/i.test(type))
    throw new RequestError(415, "the body must be UTF-8.", { field: "Content-Type" });
  if ((c.req.header("content-encoding") ?? "identity") !== "identity") {
    throw new RequestError(415, "compressed bodies are not supported.", {
      field: "Content-Encoding",
      remedy: "Send the body uncompressed.",
    });
  }
  try {
    return UTF8.decode(bytes);
  } catch (cause) {
    throw new RequestError(415, "the body must be UTF-8.", { field: "body", cause });
  }
}

function parse(text: string): object {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body;
  } catch {
    // The parser's own message quotes the body.
  }
  throw new RequestError(400, "not a JSON object.", { field: "body" });
}
