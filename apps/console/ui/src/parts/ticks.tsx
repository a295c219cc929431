import type { Tick } from "@carillon/sdk";
import type { Named } from "../lib/api.js";
import { useGet } from "../lib/query.js";
import { duration, shortTime, useNow, useZone } from "../lib/time.js";
import { words } from "../words.js";
import { type Tone, toneOf } from "./state.js";
import "./ticks.css";

/** Rows whose strips are read together. */
const CHUNK = 50;

/** The strip of one row of a list: one call reads those of its neighbours too. */
export function RowStrip({ rows, index }: { rows: readonly Named[]; index: number }) {
  const first = index - (index % CHUNK);
  const names = rows.slice(first, first + CHUNK).map(({ queue, owner, id }) => `${queue}/${owner}/${id}`);
  const strips = useGet<{ tasks: { ticks: Tick[] }[] }>("/ticks", { task: names, limit: 30 });
  const ticks = strips.isPlaceholderData ? undefined : strips.data?.tasks[index - first]?.ticks;
  return ticks === undefined || ticks.length === 0 ? null : <TickStrip ticks={ticks} />;
}

const toneOfTick = ({ state, outcome, reason }: Tick): Tone =>
  state === "skipped" || reason !== undefined ? "skip" : outcome === undefined ? "run" : toneOf(outcome);

/** Height by duration, on a logarithmic scale from 10 ms to 1 h; what did not run has the least. */
function share({ started, finished }: Tick): number {
  if (started === undefined || finished === undefined) return 0.25;
  const ms = Math.max(10, finished - started);
  return 0.25 + 0.75 * Math.min(1, Math.log10(ms / 10) / Math.log10(360_000));
}

export function tickText(tick: Tick, zone: string, now: number): string {
  const at = shortTime(tick.nominal, zone, now);
  if (tick.state === "planned" || tick.state === "held") return words.ticks.planned(at);
  if (tick.state === "skipped") return words.ticks.skipped(at, tick.reason ?? "");
  if (tick.outcome === undefined) return words.ticks.open(at);
  const took =
    tick.started === undefined || tick.finished === undefined
      ? undefined
      : duration(tick.finished - tick.started);
  return words.ticks.ended(at, words.outcomes[tick.outcome], took);
}

/** Text alternative of a strip. */
function summary(ticks: readonly Tick[]): string {
  const counts = { succeeded: 0, failed: 0, skipped: 0, other: 0, open: 0, planned: 0 };
  for (const tick of ticks) counts[kindOf(tick)] += 1;
  return words.ticks.summary(counts);
}

function kindOf({ state, outcome }: Tick) {
  if (state === "planned" || state === "held") return "planned";
  if (state === "skipped") return "skipped";
  if (outcome === undefined) return "open";
  const tone = toneOf(outcome);
  return tone === "ok" ? "succeeded" : tone === "bad" ? "failed" : "other";
}

const STRIP = { step: 7, bar: 5, height: 24 };

/** The last ticks, one bar each: height is the duration, colour the outcome, a hollow bar was skipped. */
export function TickStrip({ ticks }: { ticks: readonly Tick[] }) {
  const { step, bar, height } = STRIP;
  return (
    <svg className="ticks" role="img" aria-label={summary(ticks)} width={ticks.length * step} height={height}>
      {ticks.map((tick, i) => {
        const tall = Math.round(share(tick) * (height - 1));
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: two ticks may have one time
            key={`${tick.nominal} ${i}`}
            data-tone={toneOfTick(tick)}
            data-state={tick.state}
            x={i * step + 0.5}
            y={height - tall - 0.5}
            width={bar}
            height={tall}
            rx="1"
          />
        );
      })}
    </svg>
  );
}

const TRACK = { width: 1_000, height: 84, base: 62 };

interface TrackProps {
  ticks: readonly Tick[];
  /** Called with the time of a tick, or of an empty place. */
  onPick: (at: number) => void;
  picked: number | undefined;
}

/** Ticks on a line of time, planned against actual around now. Any place of it can be asked about. */
export function TickTrack({ ticks, onPick, picked }: TrackProps) {
  const zone = useZone();
  const now = useNow();
  const { width, height, base } = TRACK;
  const times = [...ticks.map(({ nominal }) => nominal), now];
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const margin = Math.max(1_000, (last - first) * 0.02);
  const [from, to] = [first - margin, last + margin];
  const x = (at: number) => ((at - from) / (to - from)) * width;
  return (
    <div className="track">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the form below it does the same from the keyboard */}
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summary(ticks)}
        onClick={(event) => {
          const { left, width: shown } = event.currentTarget.getBoundingClientRect();
          const at = from + ((event.clientX - left) / shown) * (to - from);
          // A click near a tick means the tick.
          const near = ticks.reduce<Tick | undefined>(
            (best, tick) =>
              best && Math.abs(best.nominal - at) <= Math.abs(tick.nominal - at) ? best : tick,
            undefined,
          );
          const reach = ((to - from) / shown) * 6;
          onPick(
            near && Math.abs(near.nominal - at) <= reach ? near.nominal : Math.round(at / 1_000) * 1_000,
          );
        }}
      >
        <line className="axis" x1="0" x2={width} y1={base} y2={base} />
        {ticks.map((tick, i) => {
          const tall = Math.round(share(tick) * (base - 10));
          const at = x(tick.nominal);
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: two ticks may have one time
            <g key={`${tick.nominal} ${i}`} data-tone={toneOfTick(tick)} data-state={tick.state}>
              <title>{tickText(tick, zone, now)}</title>
              {tick.started === undefined ? null : (
                <line
                  className="ran"
                  x1={x(tick.started)}
                  x2={Math.max(x(tick.finished ?? now), x(tick.started) + 2)}
                  y1={base + 8}
                  y2={base + 8}
                />
              )}
              <rect x={at - 2.5} y={base - tall} width="5" height={tall} />
            </g>
          );
        })}
        {picked === undefined ? null : (
          <line className="picked" x1={x(picked)} x2={x(picked)} y1="0" y2={height} />
        )}
        <line className="now" x1={x(now)} x2={x(now)} y1="0" y2={height} />
      </svg>
      <p className="ends small soft">
        <span>{shortTime(first, zone, now)}</span>
        <span>{words.ticks.legend}</span>
        <span>{shortTime(last, zone, now)}</span>
      </p>
    </div>
  );
}
