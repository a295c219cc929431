import { expect, it } from "vitest";
import { tables } from "../../scripts/bench/lib/sizing.mjs";
import { textOf } from "../../scripts/lib/pages.mjs";

it.each(Object.entries(tables()))("the page has the table of %s as it is computed", (_, table) => {
  expect(table.split("\n").length).toBeGreaterThan(5);
  expect(textOf("docs/capacity.md")).toContain(table);
});
