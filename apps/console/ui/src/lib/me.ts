import { createContext, useContext } from "react";

/** Answer of `GET /me`: who is signed in, and where. */
export interface Me {
  readonly name: string;
  readonly role: "viewer" | "operator" | "admin";
  /** The owners that the token is bound to; absent: all. */
  readonly owners?: readonly string[];
  readonly namespace: string;
  readonly version: string;
  /** Path of Bull Board below the root; absent: it is not served, or not for this token. */
  readonly bullBoard?: string;
  /** Whether people sign in and out at this console, and not at a proxy or an application around it. */
  readonly signsIn: boolean;
  /** Time of the server, UTC ms. */
  readonly now: number;
}

export const MeContext = createContext<Me | undefined>(undefined);

/**
 * Who is signed in. `act`: trigger, pause, resume, cancel, freeze, backfill. `define`: put, edit and delete. `wide`: see what belongs to
 * no owner. A page shows no button for what is not allowed; the server refuses it in any case.
 */
export function useMe(): Me & { act: boolean; define: boolean; wide: boolean } {
  const me = useContext(MeContext);
  if (!me) throw new Error("useMe outside of the shell");
  return {
    ...me,
    act: me.role !== "viewer",
    define: me.role === "admin",
    wide: me.owners === undefined,
  };
}
