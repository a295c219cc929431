import { useCall } from "./query.js";

/** Longest age of the standing in ms while nothing happens. */
const OFTEN = 20_000;

/** State of the namespace, as far as the person may see it: the frame of each page shows it. Numbers are 0 until they are known. */
export function useStanding() {
  const status = useCall("health.status", {}, { every: OFTEN }).data;
  const counts = useCall("tasks.counts", {}, { every: OFTEN }).data;
  const freezes = useCall("freezes.list", {}).data?.freezes ?? [];
  const silences = useCall("silences.list", {}).data?.silences ?? [];
  const failing = counts?.failing ?? 0;
  const queues = status?.queues.filter(({ paused }) => paused) ?? [];
  const holds = [...freezes.filter(({ active }) => active), ...silences, ...queues];
  const state = status?.state ?? "on-time";
  const texts = [state !== "on-time" && state, failing > 0 && `${failing.toLocaleString("en")} failing`];
  return {
    failing,
    held: holds.length + (counts?.states.paused ?? 0),
    /** The word of the icon: `stopped`, `behind`, `failing`, or "". */
    mark: state !== "on-time" ? state : failing > 0 ? "failing" : "",
    /** Texts for the title of the window, worst first. */
    texts: texts.filter((text) => text !== false),
  };
}
