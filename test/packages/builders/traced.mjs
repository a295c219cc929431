// Runs and fails a run under the middleware of docs/handlers.md; prints the spans that OpenTelemetry's SDK exported.
import { Client, defineTask, Worker } from "@carillon/sdk";
import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { traced } from "./recipe.mjs";

const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();

const payment = defineTask("payment", {
  queue: "payments",
  handler: async (_payload, { occurrence }) => {
    await Promise.resolve();
    trace.getTracer("app").startSpan("query").end();
    if (occurrence.task === "bad") throw new TypeError("no funds");
  },
});
const common = { connection: process.env.REDIS_URL, namespace: process.env.CARILLON_NAMESPACE };
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const worker = new Worker({ ...common, types: [payment], middleware: [traced], logger: silent });
await worker.start();
const client = new Client(common);
for (const id of ["good", "bad"]) {
  const settled = new Promise((resolve) => {
    worker.once("settled", resolve);
  });
  await client.enqueue(payment, undefined, { id });
  await settled;
}
await worker.stop();
await client.close();
const spans = exporter.getFinishedSpans().map((span) => ({
  ...{ name: span.name, kind: span.kind, attributes: span.attributes, status: span.status.code },
  ...{ id: span.spanContext().spanId, parent: span.parentSpanContext?.spanId },
  events: span.events.map(({ attributes }) => attributes["exception.type"]),
}));
process.stdout.write(JSON.stringify(spans));
