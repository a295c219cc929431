import { Store } from "@carillon/store";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ItemQueues } from "../../src/worker/item-queues.js";

let store: Store;
beforeEach(() => {
  vi.useFakeTimers();
  store = new Store({ connection: "redis://127.0.0.1:1" });
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
});

it.each([
  ["writes the progress of runs over one connection, within a second", false, 1],
  ["opens none once it is closed: nobody would close that", true, 0],
])("%s", (_what, closed, connections) => {
  const connect = vi.spyOn(store, "connect");
  const items = new ItemQueues(store);
  if (closed) items.close();
  items.moved("q", "a");
  items.moved("q", "b");
  vi.advanceTimersByTime(1_000);
  expect(connect).toHaveBeenCalledTimes(connections);
  items.close();
});
