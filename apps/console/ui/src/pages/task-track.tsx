import { countText, duration } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { refOf } from "../lib/api.js";
import { later } from "../lib/later.js";
import { useCall } from "../lib/query.js";
import { changed, timeIn } from "../lib/request.js";
import { useNow } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { Explain } from "../parts/explain.js";
import { Loaded, Panel } from "../parts/page.js";
import { type Range, TickTrack } from "../parts/tick-track.js";
import type { Tick } from "../parts/ticks.js";

const DurationPlot = later(() => import("../parts/duration-plot.js"));

/** Decided occurrences that are shown at first, and the most that one range shows. */
const TICKS = { first: 40, most: 500 };
const HOUR = 3_600_000;
const LEAST_MS = 10_000;

/** Planned and actual times on a line, each of which can be explained, and how long the runs took. */
export function Track({ task }: { task: Task }) {
  const [params, setParams] = useSearchParams();
  const around = useAround(task);
  const [from, to, at] = ["from", "to", "explain"].map((name) => timeIn(params, name));
  const range = from !== undefined && to !== undefined && to > from ? { from, to } : around;
  const asked = range && { ...refOf(task), ...range, limit: TICKS.most };
  const moving = range === around ? ["from", "to"] : [];
  const ticks = useCall("occurrences.ticks", asked, { moving });
  const set = (changes: Record<string, number | undefined>) => setParams(changed(changes), { replace: true });
  const pick = (explain: number) => set({ explain });
  return (
    <>
      <Panel
        title="Planned and actual"
        end={
          range === undefined ? null : <Moves range={range} at={at} onMove={set} isMoved={range !== around} />
        }
      >
        <div className="body stack">
          <Loaded of={ticks}>
            {({ ticks, next }) => (
              <>
                <TickTrack ticks={ticks} range={range} onPick={pick} picked={at} />
                {next === undefined ? null : (
                  <p className="small soft">{`These are the first ${TICKS.most} of the range: show a shorter one to see all.`}</p>
                )}
              </>
            )}
          </Loaded>
          <Explain task={task} at={at} onPick={pick} own={task.timezone} />
        </div>
      </Panel>
      {ticks.data === undefined ? null : <Durations ticks={ticks.data.ticks} />}
    </>
  );
}

interface MovesProps {
  range: Range;
  at: number | undefined;
  isMoved: boolean;
  onMove: (to: { from: number | undefined; to: number | undefined }) => void;
}

/** Buttons for another range: earlier, later, narrower around the explained time, wider, or around now again. */
function Moves({ range: { from, to }, at, isMoved, onMove }: MovesProps) {
  const length = to - from;
  const middle = at !== undefined && at >= from && at <= to ? at : (from + to) / 2;
  const zoom = (by: number) => {
    const half = Math.max(LEAST_MS, length * by) / 2;
    onMove({ from: Math.max(0, middle - half), to: middle + half });
  };
  const shift = (by: number) => onMove({ from: Math.max(0, from + by * length), to: to + by * length });
  const buttons: Readonly<Record<string, readonly [sign: string, press: () => void]>> = {
    Earlier: ["←", () => shift(-0.5)],
    Later: ["→", () => shift(0.5)],
    Closer: ["+", () => zoom(0.5)],
    Wider: ["−", () => zoom(2)],
  };
  return (
    <div className="inline">
      {isMoved ? (
        <Button look="plain" onClick={() => onMove({ from: undefined, to: undefined })}>
          Around now
        </Button>
      ) : null}
      {Object.entries(buttons).map(([name, [sign, press]]) => (
        <Button key={name} look="icon" aria-label={name} title={name} onClick={press}>
          {sign}
        </Button>
      ))}
    </div>
  );
}

/** A range with the last ticks, now, and the next one. It moves in steps, so that it is not read again each second. */
function useAround(task: Task): Range | undefined {
  const { queue, owner, id, nextExecution } = task;
  const now = useNow();
  const strip = useCall("occurrences.ticksMany", {
    tasks: [`${queue}/${owner}/${id}`],
    limit: TICKS.first,
  });
  if (strip.data === undefined && !strip.error) return undefined;
  const first = strip.data?.tasks[0]?.ticks[0]?.nominal ?? now - HOUR;
  const back = Math.max(LEAST_MS, now - first);
  const ahead = Math.max(back / 4, 1.2 * ((nextExecution ?? now) - now));
  // A power of two of seconds, which is stable while time passes.
  const step = 1_000 * 2 ** Math.max(0, Math.round(Math.log2((back + ahead) / 16_000)));
  return {
    from: Math.max(0, Math.floor((now - 1.04 * back) / step) * step),
    to: Math.ceil((now + ahead) / step) * step,
  };
}

/** Durations of the runs of the range. */
function Durations({ ticks }: { ticks: readonly Tick[] }) {
  // Drawn again only for other runs, because the page is rendered each second.
  const runs = useMemo(
    () =>
      ticks.flatMap(({ nominal, started, durationMs, outcome }) =>
        durationMs === undefined ? [] : [{ at: started ?? nominal, ms: durationMs, outcome }],
      ),
    [ticks],
  );
  if (runs.length < 2) return null;
  const sorted = runs.map(({ ms }) => ms).sort((a, b) => a - b);
  const rank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  const figures = [
    ["Half took at most", rank(0.5)],
    ["95 % took at most", rank(0.95)],
    ["The longest took", rank(1)],
  ] as const;
  const text = figures.map(([name, ms]) => `${name}: ${duration(ms)}`).join(", ");
  return (
    <Panel
      title="Durations of these runs"
      end={<span className="soft small">{countText(runs.length, "run")}</span>}
    >
      <div className="body stack">
        <dl className="figures">
          {figures.map(([name, ms]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{duration(ms)}</dd>
            </div>
          ))}
        </dl>
        <DurationPlot runs={runs} label={text} />
      </div>
    </Panel>
  );
}
