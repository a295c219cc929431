import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseTask } from "@carillon/core";
import { type TestKit, testKit } from "@carillon/testing";
import {
  context,
  ProxyTracerProvider,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { BullMQOtel } from "bullmq-otel";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { deliver } from "../src/http/index.js";
import { Client, defineTask, httpRequest, task, Worker } from "../src/index.js";
import { openTelemetry } from "../src/otel.js";

const QUEUE = "payments";
const MINUTE = 60_000;
const SINCE = Date.UTC(2026, 0, 1);
const exporter = new InMemorySpanExporter();
const redis = sharedRedis();
let kit: TestKit;

beforeAll(() => {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
});
afterAll(() => {
  for (const api of [trace, context, propagation]) api.disable();
});
beforeEach(() => exporter.reset());
afterEach(() => kit?.close());

const payment = defineTask("payment", {
  queue: QUEUE,
  handler: (_payload, { occurrence }) => {
    trace.getTracer("app").startSpan("query").end();
    if (occurrence.task === "bad") throw new TypeError("no funds");
  },
});

/** The finished spans with a name, oldest first. */
const spans = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((one) => one.name === name);
const only = (name: string): ReadableSpan => {
  const found = spans(name);
  expect(found).toHaveLength(1);
  return found[0] as ReadableSpan;
};
const isChild = (child: ReadableSpan, parent: ReadableSpan): boolean =>
  child.parentSpanContext?.spanId === parent.spanContext().spanId &&
  child.spanContext().traceId === parent.spanContext().traceId;
const isLinked = (one: ReadableSpan, to: ReadableSpan): boolean =>
  one.parentSpanContext === undefined &&
  one.links.some(({ context }) => context.spanId === to.spanContext().spanId);
const traceparent = (span: ReadableSpan): string => {
  const { traceId, spanId } = span.spanContext();
  return `00-${traceId}-${spanId}-01`;
};

it("requests and pushes carry the span of their attempt, or the one that enqueued them", async () => {
  const sent: unknown[] = [];
  const server = createServer((request, response) => {
    sent.push(request.headers["traceparent"]);
    response.setHeader("Content-Type", "application/json").end('{"log":[]}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const http = httpRequest({ allow: ["127.0.0.1"] });
  const push = deliver(defineTask("payment", { queue: QUEUE }), { url, signingKey: "sixteen letters." });
  for (const telemetry of [openTelemetry(), undefined]) {
    kit = await testKit({ redis, types: [http, push], ...(telemetry && { telemetry }) });
    await kit.client.put(http, { id: "t", payload: { url }, schedule: { every: "1h" } });
    await kit.client.put(push, { id: "p", schedule: { every: "1h" } });
    await kit.advance("1h");
    await kit.close();
  }
  server.close();
  const traces = [...spans(`process ${http.queue}`), ...spans(`process ${QUEUE}`)].map(traceparent);
  expect(traces).toHaveLength(2);
  expect(sent.slice(0, 2).sort()).toEqual(traces.sort());
  expect(sent.slice(2)).toEqual([undefined, undefined]);
});

describe("Carillon's worker", () => {
  it("goes on with the trace of a trigger, in a linked trace of its own, or as its child", async () => {
    for (const parent of [false, true]) {
      exporter.reset();
      kit = await testKit({ redis, types: [payment], telemetry: openTelemetry({ parent }) });
      await kit.client.put(payment, { id: "t", schedule: { every: "1d" } });
      const request = trace.getTracer("app").startSpan("request");
      const triggered = await context.with(trace.setSpan(context.active(), request), () =>
        kit.client.trigger("t"),
      );
      request.end();
      await kit.advance(0);

      const [trigger, attempt] = [only(`trigger ${QUEUE}`), only(`process ${QUEUE}`)];
      expect(isChild(trigger, only("request"))).toBe(true);
      expect([isChild(attempt, trigger), isLinked(attempt, trigger)]).toEqual([parent, !parent]);
      expect(isChild(only("query"), attempt)).toBe(true);
      const run = triggered.outcome === "enqueued" ? triggered.run : "";
      expect(await kit.client.runs.get(run)).toMatchObject({ trace: traceparent(trigger) });
      expect(trigger).toMatchObject({ kind: SpanKind.PRODUCER });
      expect(attempt).toMatchObject({ kind: SpanKind.CONSUMER, status: { code: SpanStatusCode.UNSET } });
      expect(attempt.attributes).toEqual({
        "messaging.system": "carillon",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": QUEUE,
        "messaging.message.id": run,
        "carillon.task": "system/t",
        "carillon.type": "payment",
        "carillon.trigger": "manual",
        "carillon.attempt": 1,
      });
      if (!parent) await kit.close();
    }
  });
  it("a time of a schedule begins its trace at the claim; a retry goes on with it", async () => {
    kit = await testKit({ redis, types: [payment], telemetry: openTelemetry({ parent: true }) });
    const rerun = { delay: "1m", backoff: "fixed", jitter: 0 } as const;
    await kit.client.put(payment, { id: "bad", schedule: { every: "1h" }, rerun });
    await kit.advance("61m");

    const [first, second] = spans(`claim ${QUEUE}`) as [ReadableSpan, ReadableSpan];
    expect(first.parentSpanContext).toBeUndefined();
    expect(isChild(second, first)).toBe(true);
    expect(only(`put ${QUEUE}`).attributes).toMatchObject({ "carillon.task": "system/bad" });
    const [run] = await kit.client.runs.list("bad", { limit: 1 });
    expect(second.attributes).toMatchObject({ "messaging.message.id": run?.id, "carillon.trigger": "retry" });
    expect(first.attributes).toMatchObject({ "carillon.trigger": "schedule", "carillon.late_ms": 0 });
    expect([first.startTime, first.endTime, first.duration].map(([seconds]) => seconds)).toEqual([
      kit.now / 1_000 - 60,
      kit.now / 1_000 - 60,
      0,
    ]);
    const attempts = spans(`process ${QUEUE}`);
    expect(attempts.map((one, i) => isChild(one, [first, second][i] as ReadableSpan))).toEqual([true, true]);
    expect(attempts[0]).toMatchObject({ status: { code: SpanStatusCode.ERROR } });
    expect(attempts[0]?.attributes).toMatchObject({ "error.type": "TypeError" });
    expect(attempts[0]?.events).toMatchObject([{ attributes: { "exception.type": "TypeError" } }]);
  });
  it("an enqueue, now and later, and a trigger that waits keep their trace", async () => {
    kit = await testKit({ redis, types: [payment], worker: false, telemetry: openTelemetry() });
    await kit.client.enqueue(payment, undefined, { id: "now" });
    await kit.client.enqueue(payment, undefined, { id: "later", delay: "5m" });
    await kit.client.put(payment, { id: "t", schedule: { every: "1d" }, overlap: "queue-one" });
    await kit.client.trigger("t");
    expect(await kit.client.trigger("t")).toMatchObject({ outcome: "queued" });
    await kit.work({ types: [payment], telemetry: openTelemetry() });
    await kit.advance("6m");

    const [now, later] = spans(`enqueue ${QUEUE}`) as [ReadableSpan, ReadableSpan];
    const waited = spans(`trigger ${QUEUE}`)[1] as ReadableSpan;
    const claims = spans(`claim ${QUEUE}`);
    const claimOf = (task: string) =>
      claims.find(({ attributes }) => attributes["carillon.task"] === `system/${task}`) as ReadableSpan;
    const attemptOf = (producer: ReadableSpan) =>
      spans(`process ${QUEUE}`).filter((one) => isLinked(one, producer)).length;
    expect(attemptOf(now)).toBe(1);
    expect(isChild(claimOf("later"), later)).toBe(true);
    expect(isChild(claimOf("t"), waited)).toBe(true);
    expect([attemptOf(claimOf("later")), attemptOf(claimOf("t"))]).toEqual([1, 1]);
  });
});

it("a plain worker with bullmq-otel goes on with the trace of the claim", async () => {
  kit = await testKit({ redis, worker: false, telemetry: openTelemetry() });
  await kit.client.put(payment, { id: "t", schedule: { every: "1m" }, priority: 5 });
  await kit.bullWorker(QUEUE, async () => {}, { telemetry: new BullMQOtel({ tracerName: "plain" }) });
  await kit.advance(MINUTE);

  const claim = only(`claim ${QUEUE}`);
  const attempt = exporter
    .getFinishedSpans()
    .find(
      ({ kind, attributes }) => kind === SpanKind.CONSUMER && attributes["bullmq.job.name"] === "payment",
    );
  expect(isChild(attempt as ReadableSpan, claim)).toBe(true);
});

it("the span of a claim is as long as the node was late", () => {
  const span = openTelemetry().claim(
    parseTask(task(payment, { id: "t", schedule: { every: "1m" } })).definition,
    { trigger: "schedule" },
    SINCE,
  );
  span.end("t.1", SINCE + 250);
  const claim = only(`claim ${QUEUE}`);
  expect(claim).toMatchObject({ startTime: [SINCE / 1_000, 0], duration: [0, 250_000_000] });
  expect(claim.attributes).toMatchObject({ "messaging.message.id": "t.1", "carillon.late_ms": 250 });
});

it.each([
  ["without tracing", undefined],
  ["without an SDK", openTelemetry({ tracerProvider: new ProxyTracerProvider() })],
])("%s jobs and records carry no trace", async (_, telemetry) => {
  kit = await testKit({ redis, worker: false, telemetry });
  const seen: unknown[] = [];
  await kit.bullWorker(
    QUEUE,
    async ({ data, opts }) => void seen.push("trace" in data.occurrence, opts.telemetry),
  );
  await kit.client.put(payment, { id: "t", schedule: { every: "1m" } });
  await kit.client.enqueue(payment, undefined, { id: "now" });
  await kit.advance(MINUTE);
  expect(seen).toEqual([false, undefined, false, undefined]);
  expect((await kit.client.runs.list("t"))[0]).not.toHaveProperty("trace");
});

it("what openTelemetry did not make is refused", () => {
  const telemetry = new BullMQOtel({ tracerName: "plain" }) as never;
  const connection = "redis://localhost";
  for (const make of [
    () => new Client({ connection, telemetry }),
    () => new Worker({ connection, types: [payment], telemetry }),
  ])
    expect(make).toThrow(/^telemetry: not made by openTelemetry\(\)\. Give openTelemetry\(\) of/);
});
