import { CarillonError, type Logger } from "@carillon/sdk";
import { TOKEN_ROLES } from "@carillon/sdk/internal";
import { z } from "zod";
import type { Ctx, Middleware, Person } from "./context.js";
import { logFailure, refuse } from "./errors.js";
import { isRead } from "./paths.js";

/** Returns the sender of a request; null refuses it. */
export type OwnAuth = (request: Request) => Person | null | Promise<Person | null>;

const PERSON = z.strictObject({
  role: z.enum(TOKEN_ROLES),
  name: z.string().regex(/^[^\p{Cc}]{1,128}$/u),
  owners: z.array(z.string()).min(1).optional(),
});

export function identifyBy(auth: OwnAuth, logger: Logger): Middleware {
  return async (c, next) => {
    const person = await ask(auth, c.req.raw, logger);
    if (!person)
      return refuse(c, new CarillonError("UNAUTHORIZED", "you are not signed in, or may not enter."));
    const { role, name, owners } = person;
    if (isForgeable(c)) return refuse(c, withoutOrigin());
    c.set("identity", { role, name, ...(owners && { owners }), key: `own ${name}`, by: "own" });
    return next();
  };
}

/** @throws `INTERNAL` without the reason, which may be a secret: the log has it */
async function ask(auth: OwnAuth, request: Request, logger: Logger): Promise<Person | null> {
  try {
    const person = await auth(request);
    return person && PERSON.parse(person);
  } catch (error) {
    logFailure(logger, error);
    throw new CarillonError("INTERNAL", "the function `auth` of this console failed; its log says why.");
  }
}

/**
 * Whether a page of another site could have made the browser send it: a write without an Origin, and without a token in
 * its header.
 */
export function isForgeable(c: Ctx): boolean {
  if (isRead(c) || c.req.header("origin") !== undefined) return false;
  return !/^bearer /i.test(c.req.header("authorization") ?? "");
}

export function withoutOrigin(): CarillonError {
  return new CarillonError("FORBIDDEN", "missing.", {
    field: "Origin",
    remedy: "Programs authenticate with `Authorization: Bearer <token>`.",
  });
}
