import { createContext, useContext } from "react";
import { boundTo } from "./api.js";

/** Answer of `GET /me`: the person who is signed in, and the console. */
export interface Me {
  readonly name: string;
  readonly role: "viewer" | "operator" | "admin";
  /** The owners that the token is bound to; absent: all. */
  readonly owners?: readonly string[];
  readonly namespace: string;
  readonly version: string;
  /** Path of Bull Board below the root; absent: it is not served, or not for this token. */
  readonly bullBoard?: string;
  /** The address of traces, with `{traceId}`; absent: unknown. */
  readonly traceUrl?: string;
  /** Whether people sign in and out at this console, rather than at a proxy or an application around it. */
  readonly signsIn: boolean;
  /** Time of the server, UTC ms. */
  readonly now: number;
}

export const MeContext = createContext<Me | undefined>(undefined);

/**
 * The person who is signed in. `act`: may trigger, pause, resume, cancel, freeze, backfill. `define`: may put, edit and
 * delete. `wide`: may see data that belongs to no owner. `owner`: the one whose data are shown, undefined if it is `wide`. Pages hide buttons that are not allowed, and the server
 * refuses the calls in any case.
 */
export function useMe(): Me & { act: boolean; define: boolean; wide: boolean; owner: string | undefined } {
  const me = useContext(MeContext);
  if (!me) throw new Error("useMe outside of the shell");
  return {
    ...me,
    act: me.role !== "viewer",
    define: me.role === "admin",
    wide: me.owners === undefined,
    owner: boundTo() ?? me.owners?.[0],
  };
}
