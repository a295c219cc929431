import type { AnswerTo } from "@carillon/ops";
import { eventText, explanationText, holdText } from "@carillon/ops/words";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { type Named, refOf, runPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { typedTime, useVoice, useZone } from "../lib/time.js";
import { nameOf } from "../words.js";
import { Button } from "./button.js";
import { Loaded } from "./page.js";
import { Badge, type Tone } from "./state.js";
import { Prose, Time } from "./time.js";

type Explanation = AnswerTo<"occurrences.explain">;

const TONES: Partial<Record<Explanation["verdict"], Tone>> = {
  enqueued: "ok",
  skipped: "skip",
  waiting: "run",
  due: "warn",
  held: "warn",
  planned: "run",
};

interface Props {
  task: Named;
  at: number | undefined;
  onPick: (at: number) => void;
  /** The zone of the task, if it has one of its own. */
  own?: string | undefined;
}

/** Reasons why the task did, or did not, run at a time. The server explains any time. */
export function Explain({ task, at, onPick, own }: Props) {
  return (
    <div className="stack">
      <AskForm onPick={onPick} own={own} />
      {at === undefined ? (
        <p className="soft">
          Click on a tick, or on an empty place between them, and learn why the task did or did not run then.
          With the keyboard: the arrow keys.
        </p>
      ) : (
        <Answer {...{ task, at, onPick }} />
      )}
    </div>
  );
}

/** Asks on the clock of the task, or on the reader's. */
function AskForm({ onPick, own }: Pick<Props, "onPick" | "own">) {
  const reader = useZone();
  const zones = [...new Set([own ?? reader, reader])];
  const [chosen, choose] = useState(0);
  const zone = zones[chosen] ?? reader;
  const [text, setText] = useState("");
  const ask = (event: FormEvent) => {
    event.preventDefault();
    const at = typedTime(text, zone);
    if (!Number.isNaN(at)) onPick(at);
  };
  return (
    <form className="inline" onSubmit={ask}>
      <label className="inline">
        <span>{zones.length > 1 ? "A time" : `A time (${zone})`}</span>
        <input
          className="input"
          type="datetime-local"
          step="1"
          required
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {zones.length > 1 ? (
        <select
          className="input"
          aria-label="Clock of the time"
          value={chosen}
          onChange={({ target }) => choose(Number(target.value))}
        >
          {zones.map((name, i) => (
            <option key={name} value={i}>{`in ${name} (${i === 0 ? "the task's" : "yours"})`}</option>
          ))}
        </select>
      ) : null}
      <Button type="submit">Explain</Button>
    </form>
  );
}

/** The explanation of one time. It comes into view, since a link to it may be anywhere. */
export function Answer({ task, at, onPick }: Omit<Props, "own"> & { at: number }) {
  const answer = useCall("occurrences.explain", { ...refOf(task), time: at }, { refresh: 10_000 });
  const shown = useRef<HTMLDivElement>(null);
  const own = answer.data?.timezone;
  const voice = useVoice(own);
  const isKnown = answer.data !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to each new answer
  useEffect(() => {
    // Answers with a promise in newer browsers, which must not become the effect's clean-up.
    void shown.current?.scrollIntoView({ block: "nearest" });
  }, [isKnown, at]);
  return (
    <Loaded of={answer}>
      {(explanation) => {
        const { time, verdict, events, hold, nearest } = explanation;
        return (
          <div className="stack" aria-live="polite" ref={shown}>
            <p>
              <strong>
                <Time at={time} own={own} />
              </strong>{" "}
              <Badge tone={TONES[verdict] ?? "none"}>{nameOf(verdict)}</Badge>{" "}
              <Prose of={explanationText(explanation, voice)} own={own} />
            </p>
            {hold === undefined ? null : (
              <p className="note" data-tone="warn">
                {holdText(hold, voice)}
              </p>
            )}
            {events.length === 0 ? null : (
              <ol className="rows">
                {events.map((event, i) => {
                  const { at, run, code } = event;
                  const text = <Prose of={eventText(event, voice)} />;
                  return (
                    // biome-ignore lint/suspicious/noArrayIndexKey: the list only grows
                    <li key={`${code} ${i}`}>
                      <span className="soft">{at === undefined ? "–" : <Time at={at} />}</span>
                      {run === undefined ? text : <Link href={runPath(run)}>{text}</Link>}
                    </li>
                  );
                })}
              </ol>
            )}
            {nearest === undefined ? null : (
              <p className="inline">
                {([nearest.before, nearest.after] as const).map((near, i) =>
                  near === undefined ? null : (
                    <button key={near} type="button" className="chip" onClick={() => onPick(near)}>
                      {i === 0 ? "The one before:" : "The one after:"} <Time at={near} own={own} />
                    </button>
                  ),
                )}
              </p>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
