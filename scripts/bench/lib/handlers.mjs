import { pause } from "../../lib/nodes.mjs";

/** Handlers of both sides' workers, by name. */
export const HANDLERS = {
  empty: () => {},
  "5 ms": () => pause(5),
  "1 ms of CPU": () => {
    const end = performance.now() + 1;
    while (performance.now() < end);
  },
};
