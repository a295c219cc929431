import { readFileSync } from "node:fs";
import { PGlite } from "@electric-sql/pglite"; // PostgreSQL in this process; yours is a Pool of pg
import { run } from "../run.mjs";
import { billing } from "./handler.mjs";

const database = new PGlite();
await database.exec(readFileSync(new URL("schema.sql", import.meta.url), "utf8"));
const type = billing(database, async (account) => ({ account, invoices: 2 }));

await run([type], (client) => client.enqueue(type, { account: "acme", cents: 500 }));
console.log((await database.query("SELECT account, cents FROM charge")).rows);
await database.close();
