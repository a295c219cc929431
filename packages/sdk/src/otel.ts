/**
 * Traces, by [OpenTelemetry](https://opentelemetry.io). Needs `@opentelemetry/api`, which nothing else of Carillon loads.
 *
 * @packageDocumentation
 */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { spans, type Telemetry } from "./telemetry.js";

export type { Telemetry } from "./telemetry.js";

export interface OpenTelemetryOptions {
  /** Makes the spans. Default: the provider that the process has registered. */
  tracerProvider?: TracerProvider | undefined;
  /**
   * Whether an attempt is part of the trace that enqueued its run. Default false: it begins a trace of its own, with a link to that
   * one, as the conventions advise; a run may come long after its request, and be tried again for days.
   */
  parent?: boolean | undefined;
}

/**
 * Spans of `Client` (`put`, `trigger`, `enqueue`), `Scheduler` (`claim`) and `Worker` (`process`), named and described as OpenTelemetry's
 * conventions for messaging say. They never contain payloads or results.
 *
 * @example
 * const telemetry = openTelemetry();
 * const client = new Client({ connection, telemetry });
 * const worker = new Worker({ connection, types, telemetry });
 * const node = new Scheduler({ connection, telemetry });
 */
export function openTelemetry({
  tracerProvider = trace,
  parent = false,
}: OpenTelemetryOptions = {}): Telemetry {
  const tracer = tracerProvider.getTracer("@carillon/sdk");
  return {
    produce(operation, { queue, owner, id, type, count }, work) {
      const attributes = {
        ...about(operation, operation === "put" ? "create" : "send", queue),
        ...(id !== undefined && { "carillon.task": `${owner}/${id}` }),
        ...(type !== undefined && { "carillon.type": type }),
        ...(count !== undefined && { "messaging.batch.message_count": count }),
      };
      const span = tracer.startSpan(`${operation} ${queue}`, { kind: SpanKind.PRODUCER, attributes });
      return inside(span, context.active(), async () => {
        const result = await work(traceparent(span));
        const { run } = Object(result) as { run?: unknown };
        if (typeof run === "string") span.setAttribute(RUN, run);
        return result;
      });
    },

    claim({ queue, owner, id, type }, { trigger, trace: asked }, since) {
      const attributes = {
        ...about("claim", "send", queue),
        "carillon.task": `${owner}/${id}`,
        "carillon.type": type,
        "carillon.trigger": trigger,
      };
      const options = { kind: SpanKind.PRODUCER, attributes, startTime: since };
      const span = tracer.startSpan(`claim ${queue}`, options, remote(asked));
      return {
        trace: traceparent(span),
        end(run, at) {
          span.setAttributes({ [RUN]: run, "carillon.late_ms": at - since });
          span.end(at);
        },
      };
    },

    attempt(attempt, next) {
      const { queue, owner, task, run, trigger, trace: asked } = attempt.occurrence;
      const attributes = {
        ...about("process", "process", queue),
        [RUN]: run,
        "carillon.task": `${owner}/${task}`,
        "carillon.type": attempt.type,
        "carillon.trigger": trigger,
        "carillon.attempt": attempt.attempt,
        ...("index" in attempt && { "carillon.item": Number(attempt.index) }),
      };
      const producer = parsed(asked);
      const links = producer && !parent ? [{ context: producer }] : [];
      const options = { kind: SpanKind.CONSUMER, attributes, links };
      // Not the active context: a worker that was started within a span would keep it for ever.
      const span = tracer.startSpan(`process ${queue}`, options, parent ? remote(asked) : ROOT_CONTEXT);
      const sent = traceparent(span);
      if (sent !== undefined) spans.set(attempt.occurrence, sent);
      return inside(span, ROOT_CONTEXT, next);
    },
  };
}

const RUN = "messaging.message.id";

function about(operation: string, type: "create" | "send" | "process", queue: string): Attributes {
  return {
    "messaging.system": "carillon",
    "messaging.operation.name": operation,
    "messaging.operation.type": type,
    "messaging.destination.name": queue,
  };
}

/** Does work with the span active, and ends it. */
async function inside<T>(span: Span, around: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await context.with(trace.setSpan(around, span), work);
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    span.recordException(error instanceof Error ? error : message);
    span.setAttribute("error.type", name);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
    throw error;
  } finally {
    span.end();
  }
}

/** Undefined: no SDK is registered. */
function traceparent(span: Span): string | undefined {
  const of = span.spanContext();
  if (!isSpanContextValid(of)) return undefined;
  return `00-${of.traceId}-${of.spanId}-${of.traceFlags.toString(16).padStart(2, "0")}`;
}

function parsed(text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "") ?? [];
  if (!traceId || !spanId || !flags) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

/** The context of a span elsewhere; the empty one if there is none. */
function remote(text: string | undefined): Context {
  const of = parsed(text);
  return of ? trace.setSpanContext(ROOT_CONTEXT, of) : ROOT_CONTEXT;
}
