import { implement } from "@carillon/sdk";
import { report } from "./report.mjs";

/**
 * The worker's half: only the worker imports this file.
 *
 * @param {{ send(to: string, text: string): Promise<void> }} mailer
 */
export const reportWith = (mailer) =>
  implement(report, async ({ tenant }) => {
    await mailer.send(`${tenant}@example.com`, "Your report");
  });
