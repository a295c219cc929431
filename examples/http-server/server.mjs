import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { Scheduler } from "@carillon/scheduler";
import { CarillonError, Client, defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";

/** Your storage. */
const reports = new Map(/** @type {[tenant: string, report: { pages: number }][]} */ ([]));

const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ tenant: z.string() }),
  handler: async ({ tenant }) => {
    reports.set(tenant, { pages: 3 });
  },
});

/**
 * Client, worker and node in one process with an HTTP server.
 *
 * @param {import("@carillon/sdk").Environment & { logger?: import("@carillon/sdk").Logger }} settings
 * @param {number} port 0: any free port
 */
export async function startServer({ connection, namespace, ...rest }, port) {
  const client = new Client({ connection, namespace });
  const worker = new Worker({ connection, namespace, ...rest, types: [report] });
  const node = new Scheduler({ connection, namespace, ...rest });

  const server = createServer(async (request, response) => {
    const { status, body } = await answer(client, node, request).catch(refusal);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  await Promise.all([worker.start(), node.start()]);

  return {
    server,
    /** First the requests end, then the handlers, then what both need. */
    async stop() {
      await new Promise((resolve) => server.close(resolve));
      await worker.stop({ within: 30_000 });
      await node.stop();
      await client.close();
    },
  };
}

/**
 * @param {Client} client
 * @param {Scheduler} node
 * @param {import("node:http").IncomingMessage} request
 * @returns {Promise<{ status: number, body: unknown }>}
 */
async function answer(client, node, request) {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/health") return { status: node.ready ? 200 : 503, body: node.readiness };
  if (pathname === "/reports" && request.method === "POST") {
    const { task } = await client.enqueue(report, /** @type {{ tenant: string }} */ (await json(request)));
    return { status: 202, body: { id: task.id } };
  }
  const found = reports.get(pathname.replace("/reports/", ""));
  return found ? { status: 200, body: found } : { status: 404, body: { message: "no such report" } };
}

/**
 * Errors of the SDK know their status: a wrong payload is a 400.
 *
 * @param {unknown} error
 */
function refusal(error) {
  if (error instanceof CarillonError) return { status: error.statusCode, body: { error } };
  return { status: 500, body: { message: "internal error" } };
}
