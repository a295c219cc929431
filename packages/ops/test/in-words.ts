import { type AnswerTo, OPERATIONS, operatorOf } from "@carillon/ops";
import {
  eventText,
  explanationText,
  findingText,
  holdText,
  reasonText,
  remedyText,
  type Voice,
} from "@carillon/ops/words";
import type { Client, TaskRef } from "@carillon/sdk";
import { expect } from "vitest";

/** Sentences with times in UTC. */
const UTC: Voice = {
  surface: "cli",
  time: (at) => new Date(at).toISOString().replace(".000Z", "Z"),
};

/** An explanation with its sentences. */
export async function explained(client: Client, ref: TaskRef, time?: string | number | Date) {
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

/** The status with its sentences. */
export async function statusOf(client: Client) {
  const answer = await operatorOf(client).health.status();
  expect(OPERATIONS.health.status.output?.parse(answer)).toEqual(answer);
  const { reasons, notes, ...rest } = answer;
  const inWords = (reason: (typeof reasons)[number]) => ({
    ...reason,
    message: reasonText(reason, UTC),
    remedy: remedyText(reason, UTC),
  });
  return { ...rest, reasons: reasons.map(inWords), notes: notes.map(inWords) };
}

/** The diagnosis of the doctor with its sentences. */
export async function examined(client: Client) {
  const answer = await operatorOf(client).health.doctor();
  expect(OPERATIONS.health.doctor.output?.parse(answer)).toEqual(answer);
  const { findings, ...rest } = answer;
  return { ...rest, findings: findings.map((one) => ({ ...one, ...findingText(one, UTC) })) };
}
