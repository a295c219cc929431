import type { AnswerTo } from "@carillon/ops";
import type { Named } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { shortTime, tookText } from "../lib/time.js";
import { type Tone, toneOf } from "./state.js";
import "./ticks.css";
import { nameOf } from "../words.js";

export type Tick = AnswerTo<"occurrences.ticks">["ticks"][number];

/** Rows whose strips are read together. */
const CHUNK = 50;

/** The strip of one row of a list, read in one call with those of its neighbours. */
export function RowStrip({ rows, index }: { rows: readonly Named[]; index: number }) {
  const first = index - (index % CHUNK);
  const names = rows.slice(first, first + CHUNK).map(({ queue, owner, id }) => `${queue}/${owner}/${id}`);
  const strips = useCall("occurrences.ticksMany", { tasks: names, limit: 30 });
  const ticks = strips.data?.tasks[index - first]?.ticks;
  return ticks === undefined || ticks.length === 0 ? null : <TickStrip ticks={ticks} />;
}

export const toneOfTick = ({ state, outcome, reason }: Tick): Tone =>
  state === "skipped" || state === "held" || reason !== undefined
    ? "skip"
    : outcome === undefined
      ? "run"
      : toneOf(outcome);

/** Height by duration, on a logarithmic scale from 10 ms to 1 h; the least for occurrences that did not run. */
export function share({ started, finished }: Tick): number {
  if (started === undefined || finished === undefined) return 0.25;
  const ms = Math.max(10, finished - started);
  return 0.25 + 0.75 * Math.min(1, Math.log10(ms / 10) / Math.log10(360_000));
}

export function tickText(tick: Tick, zone: string, now: number): string {
  const at = shortTime(tick.nominal, zone, now);
  if (tick.state === "planned") return `${at}: planned`;
  if (tick.state === "held") return `${at}: held${tick.note === undefined ? "" : ` (${tick.note})`}`;
  if (tick.state === "skipped") return `${at}: skipped (${tick.reason ?? ""})`;
  if (tick.outcome === undefined) return `${at}: not over yet`;
  const took = tookText(tick);
  return `${at}: ${nameOf(tick.outcome)}${took === undefined ? "" : ` in ${took}`}`;
}

/** Text alternative of a strip. */
export function summary(ticks: readonly Tick[]): string {
  const counts = { succeeded: 0, failed: 0, skipped: 0, other: 0, open: 0, held: 0, planned: 0 };
  for (const tick of ticks) counts[kindOf(tick)] += 1;
  const given = Object.entries(counts).filter(([, n]) => n > 0);
  return given.length === 0 ? "No ticks" : `Ticks: ${given.map(([kind, n]) => `${n} ${kind}`).join(", ")}`;
}

function kindOf({ state, outcome }: Tick) {
  if (state === "planned" || state === "held" || state === "skipped") return state;
  if (outcome === undefined) return "open";
  const tone = toneOf(outcome);
  return tone === "ok" ? "succeeded" : tone === "bad" ? "failed" : "other";
}

const STRIP = { step: 7, bar: 5, height: 24 };

/** The last ticks, one bar each: height is the duration, colour the outcome, a hollow bar was skipped. */
function TickStrip({ ticks }: { ticks: readonly Tick[] }) {
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
