import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { type Named, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { changed } from "../lib/request.js";
import { dayOf, startOf, typedTime, useNow, useZone } from "../lib/time.js";
import { doneToMany } from "../lib/undo.js";
import { Ask } from "../parts/ask.js";
import { Button } from "../parts/button.js";
import { Filters } from "../parts/filters.js";
import { HeatMap } from "../parts/heat-map.js";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.js";
import { Relative, ScheduleText, Time } from "../parts/time.js";

type Load = AnswerTo<"occurrences.load">;
type BusyStep = Load["busiest"][number];
type Contributor = BusyStep["collisions"][number]["schedules"][number];
type Filter = Readonly<Record<string, string | undefined>>;
const NAMES = ["owner", "queue", "tag"] as const;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** From the start of a day into the middle of the next one, however long a change of the clock makes it. */
const NEXT_DAY = 36 * HOUR;

/** Occurrences of the next 24 hours or of a day, minute by minute, and the times at which tasks crowd. */
export default function LoadPage() {
  const [params] = useSearchParams();
  const [picked, setPicked] = useState<number | undefined>();
  const given = Object.fromEntries(NAMES.map((name) => [name, params.get(name) ?? undefined]));
  const days = useDays(params.get("day"));
  const load = useCall(
    "occurrences.load",
    { ...given, ...days.range, step: "1m" },
    { refresh: MINUTE, maxAge: 20 },
  );
  return (
    <>
      <PageHead title="Load" />
      <div className="stack">
        <Panel title="Planned starts, minute by minute" end={<Filters names={NAMES} />}>
          <p className="body chips">
            {days.chips.map(({ name, day, shown }) => (
              <Link
                key={name}
                className="chip"
                href={`/load?${changed({ day })(params)}`}
                aria-current={shown}
              >
                {name}
              </Link>
            ))}
          </p>
          <Loaded of={load}>
            {(load) =>
              load.total === 0 ? (
                <Empty>Nothing is planned in this time.</Empty>
              ) : (
                <>
                  <HeatMap load={load} picked={picked} onPick={setPicked} />
                  <Picker onPick={setPicked} />
                </>
              )
            }
          </Loaded>
        </Panel>
        {picked === undefined ? null : <Minute at={picked} filter={given} />}
        {load.data && load.data.total > 0 ? (
          <Panel title="Busiest minutes">
            <Steps steps={load.data.busiest} filter={given} />
          </Panel>
        ) : null}
      </div>
    </>
  );
}

/** The next 24 hours, or the day that the address names, and a chip for each choice. */
function useDays(named: string | null) {
  const zone = useZone();
  const now = useNow();
  const after = (day: string) => dayOf((startOf(day, zone) ?? now) + NEXT_DAY, zone);
  const tomorrow = after(dayOf(now, zone));
  const day = named !== null && startOf(named, zone) !== undefined ? named : undefined;
  const chip = (name: string, of: string | undefined) => ({ name, day: of, shown: day === of });
  const chips = [chip("Next 24 hours", undefined), chip("Tomorrow", tomorrow)];
  if (chips.every(({ shown }) => !shown)) chips.push(chip(day as string, day));
  return { chips, range: day && { from: startOf(day, zone), to: startOf(after(day), zone) } };
}

/** Picks a minute by keyboard. */
function Picker({ onPick }: { onPick: (at: number) => void }) {
  const zone = useZone();
  return (
    <form
      className="body inline"
      onSubmit={(event) => {
        event.preventDefault();
        onPick(typedTime(String(new FormData(event.currentTarget).get("minute")), zone));
      }}
    >
      <span className="soft">Click on a minute to see which tasks meet there, or name it:</span>
      <input
        className="input"
        name="minute"
        type="datetime-local"
        required
        aria-label={`A minute (${zone})`}
        title={`A minute (${zone})`}
      />
      <Button type="submit">Show</Button>
    </form>
  );
}

/** The minute that was picked. */
function Minute({ at, filter }: { at: number; filter: Filter }) {
  const query = { ...filter, from: at, to: at + MINUTE, step: "1m" };
  const load = useCall("occurrences.load", query, { refresh: false });
  return (
    <section aria-live="polite">
      <Panel title={<Time at={at} />}>
        <Loaded of={load}>
          {({ busiest }) =>
            busiest.length === 0 ? <Empty>0 starts</Empty> : <Steps steps={busiest} filter={filter} />
          }
        </Loaded>
      </Panel>
    </section>
  );
}

/** Minutes with the instants at which most of their tasks meet, each with a button that spreads them. */
function Steps({ steps, filter }: { steps: readonly BusyStep[]; filter: Filter }) {
  const { define } = useMe();
  const [herd, setHerd] = useState<{ at: number; jitter: string }>();
  return (
    <>
      <ul className="rows">
        {steps.map(({ at, count, collisions }) => (
          <li key={at}>
            <strong>
              <Time at={at} />
            </strong>
            <span>{countText(count, "start")}</span>
            <span className="end soft">
              <Relative at={at} />
            </span>
            {define && collisions[0] ? (
              <Button onClick={() => setHerd({ at, jitter: collisions[0]?.schedules[0]?.jitter ?? "5m" })}>
                Spread them
              </Button>
            ) : null}
            {collisions.length === 0 ? (
              <p className="wide soft">No two of these tasks start at the same instant.</p>
            ) : (
              <details className="wide" open={steps.length === 1}>
                <summary>
                  {countText(collisions[0]!.count, "task")} at once:{" "}
                  <ScheduleText of={collisions[0]!.schedules[0]?.humanized ?? ""} />
                </summary>
                {collisions.map((collision) => (
                  <div key={collision.at}>
                    {collision.at === at ? null : (
                      <h3>
                        <Time at={collision.at} />: {countText(collision.count, "task")} at once
                      </h3>
                    )}
                    <ul>
                      {collision.schedules.map((one) => (
                        <Crowd key={`${one.humanized} ${taskPath(one.sample[0] as Named)}`} of={one} />
                      ))}
                    </ul>
                  </div>
                ))}
              </details>
            )}
          </li>
        ))}
      </ul>
      {herd === undefined ? null : (
        <Ask
          title="Spread the starts of this minute"
          act="Spread"
          does="tasks.spread"
          given={{ ...filter, at: herd.at }}
          fields={["jitter"]}
          looks={{
            jitter: {
              first: herd.jitter,
              hint: "Each of these tasks starts up to this time later, by its name. Those that have a jitter, or start again within twice this time, stay as they are.",
            },
          }}
          shows="first"
          onDone={(done) => doneToMany("spread", done)}
          onClose={() => setHerd(undefined)}
        />
      )}
    </>
  );
}

/** Tasks with one schedule, and the jitter that would spread them. */
function Crowd({ of: { humanized, tasks, sample, jitter } }: { of: Contributor }) {
  return (
    <li className="inline">
      <span className="soft">
        {countText(tasks, "task")}, <ScheduleText of={humanized} />:
      </span>
      <ul className="inline">
        {sample.map((task) => (
          <li key={taskPath(task)} className="any">
            <Link href={taskPath(task)} data-row>
              {shortName(task)}
            </Link>
          </li>
        ))}
        {tasks > sample.length ? (
          <li className="soft">{`and ${countText(tasks - sample.length, "other")}`}</li>
        ) : null}
      </ul>
      {jitter === undefined ? null : <span>{`A jitter of ${jitter} would spread them.`}</span>}
    </li>
  );
}
