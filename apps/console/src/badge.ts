import { FAILURES, SUCCESSES } from "@carillon/ops/words";
import { isCarillonError, type Task } from "@carillon/sdk";
import { clientFor } from "./api/clients.js";
import type { Ctx } from "./context.js";

/** Width of a letter, in pixels. */
const LETTER = 7;

/**
 * `/badges/QUEUE/OWNER/ID.svg`: the last outcome of a task as a picture, or with `?show=next` its next time. A token of the role `badge`
 * may read nothing else; its owner's tasks alone, if it is bound. The answer for another owner's task is that for one that does not exist.
 */
export async function badge(c: Ctx): Promise<Response> {
  const { queue = "", owner = "", file = "" } = c.req.param() as Record<string, string>;
  const id = file.replace(/\.svg$/, "");
  const task = await find(c, { queue, owner, id });
  const text = task ? (c.req.query("show") === "next" ? nextOf(task) : outcomeOf(task)) : "unknown";
  return c.body(svgOf(task ? id : "task", text), task ? 200 : 404, {
    "Content-Type": "image/svg+xml",
    "Cache-Control": "max-age=60",
  });
}

async function find(c: Ctx, name: { queue: string; owner: string; id: string }): Promise<Task | undefined> {
  try {
    return await clientFor(c).get(name);
  } catch (error) {
    const isHidden = ["TASK_NOT_FOUND", "FORBIDDEN", "INVALID_NAME"].some((code) =>
      isCarillonError(error, code as "FORBIDDEN"),
    );
    if (!isHidden) throw error;
    return undefined;
  }
}

function outcomeOf({ lastStatus, lastChecked }: Task): string {
  return lastStatus?.outcome ?? (lastChecked === undefined ? "never ran" : "nothing-to-do");
}

function nextOf({ state, nextExecution }: Task): string {
  if (nextExecution === undefined) return state === "paused" ? "paused" : "no next time";
  return `${new Date(nextExecution).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Both texts are names or our own words, which have no markup. */
function svgOf(label: string, text: string): string {
  const has = (outcomes: ReadonlySet<string>) => outcomes.has(text);
  const colour = has(FAILURES) ? "#b3261e" : has(SUCCESSES) ? "#1f7a4d" : "#56656d";
  const [left, right] = [label, text].map((one) => one.length * LETTER + 12) as [number, number];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${text}">
<rect width="${left}" height="20" fill="#24323a"/><rect x="${left}" width="${right}" height="20" fill="${colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="${left / 2}" y="14">${label}</text><text x="${left + right / 2}" y="14">${text}</text></g></svg>`;
}
