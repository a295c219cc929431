import { defineTask, PermanentError } from "@carillon/sdk";
import { z } from "zod";

/**
 * The method that `Pool` and `Client` of `pg` share.
 *
 * @typedef {{ query(sql: string, values: unknown[]): Promise<{ rows: unknown[] }> }} Database
 */

/** Uses the idempotency key: of several deliveries of an occurrence, only one charges. */
export const CHARGE = `
  INSERT INTO charge (key, account, cents) VALUES ($1, $2, $3)
  ON CONFLICT (key) DO NOTHING
  RETURNING key`;

/** Uses the fence: an attempt that counted as dead changes nothing. */
export const WRITE_STATEMENT = `
  UPDATE statement SET body = $2, fence = $3
  WHERE account = $1 AND fence < $3
  RETURNING fence`;

/** Creates the row that the update needs; the first attempt does it. */
export const OPEN_STATEMENT = `
  INSERT INTO statement (account, body, fence) VALUES ($1, '{}', 0)
  ON CONFLICT (account) DO NOTHING`;

/**
 * @param {Database} database
 * @param {(account: string, signal: AbortSignal) => Promise<object>} collect
 */
export function billing(database, collect) {
  return defineTask("billing", {
    queue: "billing",
    payload: z.object({ account: z.string(), cents: z.number().int().positive() }),
    handler: async ({ account, cents }, { idempotencyKey, fence, signal, log }) => {
      const charged = await database.query(CHARGE, [idempotencyKey, account, cents]);
      if (charged.rows.length === 0) log("charged by an earlier delivery");

      const body = await collect(account, signal);
      await database.query(OPEN_STATEMENT, [account]);
      const written = await database.query(WRITE_STATEMENT, [account, JSON.stringify(body), fence]);
      if (written.rows.length === 0) throw new PermanentError("A later attempt has written this statement.");
    },
  });
}
