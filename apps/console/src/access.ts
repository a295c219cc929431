import { rightsAt } from "@carillon/ops/internal";
import { CarillonError, type Logger } from "@carillon/sdk";
import { TOKEN_ROLES, type TokenRole } from "@carillon/sdk/internal";
import { type Ctx, clientAddress, type Middleware } from "./context.js";
import { refuse } from "./errors.js";
import { API_PATH, isApi, isOwned, isRead, onlyActs, onlyAsks } from "./paths.js";

/** Refuses requests that the sender's role or owners do not allow. */
export const roleAllows: Middleware = async (c, next) => {
  const error = refusal(c);
  return error ? refuse(c, error) : next();
};

const WHOSE: Readonly<Record<TokenRole, string>> = {
  viewer: "a viewer, an operator or an admin",
  operator: "an operator or an admin",
  admin: "an admin",
};

function refusal(c: Ctx): CarillonError | undefined {
  const { role, owners } = c.var.identity;
  const { least, owned, noun = "this" } = needs(c);
  if (owners && !owned) {
    const what = `this token is bound to the owner ${owners.join(", ")}, and this concerns the whole namespace.`;
    return new CarillonError("FORBIDDEN", what, { remedy: "Use a token without owners." });
  }
  if (TOKEN_ROLES.indexOf(role) >= TOKEN_ROLES.indexOf(least)) return undefined;
  const { [least]: whose } = WHOSE;
  const remedy = `Sign in with the token of ${whose}.`;
  if (isRead(c)) return new CarillonError("FORBIDDEN", `only ${whose} may see ${noun}.`, { remedy });
  const what =
    role === "operator" ? "an operator may not define, edit or remove anything" : `a ${role} may only read`;
  return new CarillonError("FORBIDDEN", `${what}.`, { remedy });
}

/** The least role that a request needs, and whether a caller that is bound to owners may send it. */
function needs(c: Ctx): { least: TokenRole; owned: boolean; noun?: string } {
  const rights = isApi(c) ? rightsAt(c.req.method, c.req.path.slice(API_PATH.length)) : undefined;
  if (rights) return { least: rights.role, owned: rights.reach === "owner", noun: rights.noun };
  return { least: onlyAsks(c) ? "viewer" : onlyActs(c) ? "operator" : "admin", owned: isOwned(c) };
}

/** Logs changes and who made them. Paths contain names of queues, tasks and jobs, never a token. */
export function audit(logger: Logger): Middleware {
  return async (c, next) => {
    if (onlyAsks(c)) return next();
    const { role, name, by } = c.var.identity;
    const log = (outcome: object) => {
      const { method, path } = c.req;
      logger.info({ role, token: name, by, from: clientAddress(c), method, path, ...outcome }, "write");
    };
    // A request counts even if the client left before the answer.
    const { signal } = c.req.raw;
    const left = () => log({ left: true });
    signal.addEventListener("abort", left, { once: true });
    await next();
    signal.removeEventListener("abort", left);
    // The location names the task if the path does not.
    const location = c.res.headers.get("location") ?? undefined;
    if (!signal.aborted) log({ status: c.res.status, location });
  };
}
