import type { Alert, Store } from "@carillon/store";

/**
 * The content of a webhook or a mail: the alert, with the current run record and task statistics. The error has no stack, which is useless
 * outside this process.
 */
export async function alertBody(
  store: Store,
  alert: Alert,
  type: string,
  consoleUrl: string | undefined,
): Promise<Record<string, unknown>> {
  const { kind, task, at, run: id, message, ended } = alert;
  const [run, stats] = await Promise.all([
    id === undefined ? undefined : store.runs.get(task.queue, id),
    store.runs.stats(task),
  ]);
  const body = {
    kind,
    namespace: store.namespace,
    task,
    type,
    outcome: run?.outcome,
    nominal: run?.nominal,
    at,
    run: id,
    attempts: run?.attempts,
    consecutiveFailures: Number(stats.consecutiveFailures ?? 0),
    message,
    ended,
    link:
      consoleUrl && `${consoleUrl}/queues/queue/${task.queue}${run ? `/${encodeURIComponent(run.id)}` : ""}`,
    error: alert.error === undefined ? undefined : withoutStack(alert.error),
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

/** The lines before the first one of the stack. */
function withoutStack(error: string): string {
  const lines = error.split("\n");
  const stack = lines.findIndex((line) => /^\s+at /.test(line));
  return (stack === -1 ? lines : lines.slice(0, stack)).join("\n");
}
