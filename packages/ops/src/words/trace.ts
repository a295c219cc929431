import type { Run } from "@carillon/core";

export const TRACE_URL_REMEDY =
  "Use an http or https address with {traceId} in it, for example https://jaeger.example.com/trace/{traceId}.";

/** Whether a text is the address of traces, with `{traceId}` in place of a trace's id. */
export function isTraceUrl(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && text.includes("{traceId}");
}

/** The address of a run's trace; undefined if it has none. @param url as `isTraceUrl` accepts it */
export function traceLink(url: string | undefined, { trace }: Pick<Run, "trace">): string | undefined {
  const [, id] = /^00-([0-9a-f]{32})-/.exec(trace ?? "") ?? [];
  return id && url?.replaceAll("{traceId}", id);
}
