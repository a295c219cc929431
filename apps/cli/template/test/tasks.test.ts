import test from "node:test";
import { testKit } from "@carillon/testing";
import { greet, hello } from "../src/tasks.ts";

test("greets twelve times a minute", async () => {
  // Redis, node, worker and client are real; a day passes in a moment.
  await using kit = await testKit({ types: [greet] });
  await kit.client.putMany([hello]);
  await kit.advance("1 minute");
  await kit.expect("hello").fired(12).outcome("succeeded");
});
