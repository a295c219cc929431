import { CarillonError, type Logger } from "@carillon/sdk";
import { type Ctx, clientAddress, type Middleware } from "./context.js";
import { refuse } from "./errors.js";
import { isForAdmins, isOwned, onlyActs, onlyAsks } from "./paths.js";

/** Refuses requests that the sender's role or owners do not allow. */
export const roleAllows: Middleware = async (c, next) => {
  const error = refusal(c);
  return error ? refuse(c, error) : next();
};

function refusal(c: Ctx): CarillonError | undefined {
  const { role, owners } = c.var.identity;
  if (owners && !isOwned(c)) {
    const what = `this token is bound to the owner ${owners.join(", ")}, and this concerns the whole namespace.`;
    return new CarillonError("FORBIDDEN", what, { remedy: "Use a token without owners." });
  }
  if (role === "admin") return undefined;
  if (isForAdmins(c)) {
    const remedy = "Sign in with the token of an admin.";
    return new CarillonError("FORBIDDEN", "only an admin may see and change tokens.", { remedy });
  }
  if (onlyAsks(c) || (role === "operator" && onlyActs(c))) return undefined;
  const [what, whose] =
    role === "operator"
      ? ["an operator may not define, edit or remove anything", "an admin"]
      : ["a viewer may only read", onlyActs(c) ? "an operator or an admin" : "an admin"];
  return new CarillonError("FORBIDDEN", `${what}.`, { remedy: `Sign in with the token of ${whose}.` });
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
