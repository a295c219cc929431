import { bullPrefix, Client, readEnvironment } from "@carillon/sdk";
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { processMail, putDigest } from "./digest.mjs";

const { namespace } = readEnvironment();
const client = new Client(readEnvironment());
const connection = new Redis(process.env.REDIS_URL ?? "", { maxRetriesPerRequest: null });
const worker = new Worker("mail", processMail, { connection, prefix: bullPrefix(namespace, "mail") });
const end = new Promise((resolve) => worker.once("completed", resolve));

await putDigest(client);
await client.trigger("digest"); // runs it now, not on Monday, and without a node: a trigger enqueues at once
await end;
console.log("digest: completed");

await worker.close();
connection.disconnect();
await client.close();
