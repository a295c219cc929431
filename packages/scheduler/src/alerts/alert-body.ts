import type { TaskName } from "@carillon/core";
import { type AlertBody, defined } from "@carillon/core/internal";
import type { Alert, Store } from "@carillon/store";

/**
 * The content of a webhook or a mail: the alert, with the current run record and task statistics. The error has no
 * stack, which is useless outside this process.
 */
export async function alertBody(
  store: Store,
  alert: Alert,
  type: string | undefined,
  consoleUrl: string | undefined,
): Promise<AlertBody> {
  const { kind, task, at, run: id, message, ended, cause } = alert;
  if (task === undefined) return bodyOf(store, alert, consoleUrl);
  const [run, stats] = await Promise.all([
    id === undefined ? undefined : store.runs.many(task.queue, [id]).then(([run]) => run),
    store.runs.stats(task),
  ]);
  return defined({
    kind,
    namespace: store.namespace,
    task,
    type,
    outcome: run?.outcome,
    nominal: run?.nominal,
    at,
    run: id,
    attempts: run?.attempts,
    ...(run && kind === "late-start" && { lateMs: run.lateMs, waitMs: run.waitMs }),
    ...(run?.started !== undefined && kind === "slow" && { tookMs: (run.finished ?? at) - run.started }),
    consecutiveFailures: Number(stats.consecutiveFailures ?? 0),
    message,
    ended,
    cause,
    link: linkOf(consoleUrl, task, run?.id),
    error: alert.error === undefined ? undefined : withoutStack(alert.error),
  });
}

function bodyOf(
  { namespace }: Store,
  { kind, code, queue, type, at, message, ended }: Alert,
  consoleUrl: string | undefined,
): AlertBody {
  return defined({ kind, namespace, code, queue, type, at, message, ended, link: consoleUrl });
}

/** The console's page of the run, or of the task. It outlives the job, and each role may open it. */
function linkOf(
  consoleUrl: string | undefined,
  { queue, owner, id }: TaskName,
  run: string | undefined,
): string | undefined {
  const page =
    run === undefined
      ? `tasks/${queue}/${owner}/${id}`
      : `runs/${encodeURIComponent(run).replace("%40", "@")}`;
  return consoleUrl && `${consoleUrl}/${page}`;
}

/** The lines before the first one of the stack. */
function withoutStack(error: string): string {
  const lines = error.split("\n");
  const stack = lines.findIndex((line) => /^\s+at /.test(line));
  return (stack === -1 ? lines : lines.slice(0, stack)).join("\n");
}
