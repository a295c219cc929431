import { type AnswerTo, operatorOf } from "@carillon/ops";
import { eventText, explanationText, holdText, type Voice } from "@carillon/ops/words";
import type { Client, TaskRef } from "@carillon/sdk";

/** Sentences with times in UTC. */
const UTC: Voice = {
  surface: "cli",
  time: (at) => new Date(at).toISOString().replace(".000Z", "Z"),
};

/** An explanation with its sentences. */
export async function explained(client: Client, ref: TaskRef, time: string | number | Date) {
  const [id = "", owner] = typeof ref === "string" ? ref.split("/").reverse() : [];
  const name = typeof ref === "string" ? { id, owner } : ref;
  const { events, hold, ...rest } = await operatorOf(client).occurrences.explain({ ...name, time });
  const whole: AnswerTo<"occurrences.explain"> = { ...rest, events, hold };
  return {
    ...rest,
    summary: explanationText(whole, UTC),
    hold: hold && holdText(hold, UTC),
    events: events.map((event) => ({ ...event, text: eventText(event, UTC) })),
  };
}
