import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { namespaceKeys } from "../src/keys.js";
import { FACTS } from "../src/script/facts.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../docs/architecture/redis.md", import.meta.url)),
  "utf8",
);

it("names each kind of key in the table of the docs", () => {
  const { queue, ...own } = namespaceKeys("ns");
  const texts = [...Object.values(own), ...Object.values(queue("q"))].filter(
    (key) => typeof key === "string",
  );
  const ours = texts.map((key) => key.replace("{ns:q}:", "")).filter((key) => /^(~|\{ns\})/.test(key));
  const kinds = [...ours, ...Object.values(FACTS.keys).map((prefix) => `~${prefix}`)];
  expect(kinds.length).toBeGreaterThan(40);
  expect(kinds.filter((kind) => !page.includes(kind))).toEqual([]);
});
