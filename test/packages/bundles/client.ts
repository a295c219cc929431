import { Client, readEnvironment } from "@carillon/sdk";
import { bell } from "./bell.js";

async function main(): Promise<void> {
  const client = new Client(readEnvironment());
  await client.put(bell, { id: "bell", payload: { strokes: 3 }, schedule: { every: "1s" } });
  await client.close();
}

void main();
