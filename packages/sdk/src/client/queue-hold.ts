import { gapText, pauseText } from "@carillon/core/internal";
import { Coverage, type Store } from "@carillon/store";

/** Reason why no worker takes a job of this type that waits in the queue. Undefined: one may, or nothing is known. */
export async function holdOf(store: Store, queue: string, type: string): Promise<string | undefined> {
  const state = await store.queues.state(queue);
  if (state?.paused) return `the queue is paused${pauseText(state.paused)}`;
  const [gap] = (await new Coverage(store).gaps([{ queue, type }])).values();
  return gap && gapText(gap);
}
