import express, { type Request, type RequestHandler } from "express";
import { RequestError } from "../errors.js";

const MAX_BODY_BYTES = 512 * 1024;

const parse = express.json({
  limit: MAX_BODY_BYTES,
  inflate: false,
  // Otherwise bytes that are not UTF-8 would be stored as replacement characters.
  verify: (_req, _res, body) => void new TextDecoder("utf-8", { fatal: true }).decode(body),
});

/** Reads a body, which must be JSON; without one, `req.body` is undefined. */
export const jsonBody: RequestHandler = (req, res, next) => {
  if (hasBody(req) && req.is("application/json") === false) {
    throw new RequestError(415, "a body must be JSON.", {
      field: "Content-Type",
      remedy: "Send `Content-Type: application/json`.",
    });
  }
  parse(req, res, (error?: unknown) => next(error === undefined ? undefined : unreadable(error)));
};

function hasBody(req: Request): boolean {
  return req.get("transfer-encoding") !== undefined || Number(req.get("content-length") ?? 0) > 0;
}

/** The parser's own messages quote the body. */
function unreadable(cause: unknown): unknown {
  switch ((cause as { type?: unknown }).type) {
    case "entity.too.large":
      return new RequestError(413, `larger than ${MAX_BODY_BYTES} bytes.`, {
        field: "body",
        remedy: "Store the data elsewhere and send a reference to it.",
        cause,
      });
    case "entity.parse.failed":
      return new RequestError(400, "not a JSON object.", { field: "body", cause });
    case "charset.unsupported":
      return new RequestError(415, "the body must be UTF-8.", { field: "Content-Type", cause });
    case "entity.verify.failed":
      return new RequestError(415, "the body must be UTF-8.", { field: "body", cause });
    case "encoding.unsupported":
      return new RequestError(415, "compressed bodies are not supported.", {
        field: "Content-Encoding",
        remedy: "Send the body uncompressed.",
        cause,
      });
    default:
      return cause;
  }
}
