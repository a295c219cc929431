import type { KeyboardEvent, MouseEvent } from "react";
import { shortTime, useNow, useZone } from "../lib/time.js";
import { share, summary, type Tick, tickText, toneOfTick } from "./ticks.js";

/** UTC ms, both included. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

const TRACK = { width: 1_000, height: 84, base: 62 };
/** A click that is at most this many px away from a tick selects that tick. */
const REACH_PX = 6;

interface Props {
  ticks: readonly Tick[];
  range: Range | undefined;
  /** Called with the time of a tick, or of an empty place. */
  onPick: (at: number) => void;
  picked: number | undefined;
}

/**
 * Ticks on a line of time, with planned and actual times around now. Any position can be explained; the arrow keys move
 * from tick to tick.
 */
export function TickTrack({ ticks, range, onPick, picked }: Props) {
  const zone = useZone();
  const now = useNow();
  if (range === undefined) return null;
  const { from, to } = range;
  const { width, height, base } = TRACK;
  const x = (at: number) => Math.min(width, Math.max(0, ((at - from) / (to - from)) * width));
  const isInside = (at: number) => at >= from && at <= to;
  const here = ticks.findIndex(({ nominal }) => nominal === picked);
  const press = (event: KeyboardEvent) => {
    const target = keyTarget(event.key, ticks, picked ?? now);
    if (target === undefined) return;
    event.preventDefault();
    onPick(target.nominal);
  };
  const click = (event: MouseEvent) => {
    const { left, width: shown } = event.currentTarget.getBoundingClientRect();
    const at = from + ((event.clientX - left) / shown) * (to - from);
    const distance = ({ nominal }: Tick) => Math.abs(nominal - at);
    const near = ticks.reduce<Tick | undefined>(
      (best, tick) => (best && distance(best) <= distance(tick) ? best : tick),
      undefined,
    );
    const reach = ((to - from) / shown) * REACH_PX;
    onPick(near && distance(near) <= reach ? near.nominal : Math.round(at / 1_000) * 1_000);
  };
  return (
    <div className="track">
      <div
        role="slider"
        tabIndex={0}
        aria-label={`Planned and actual times; the arrow keys go from one to the next. ${summary(ticks)}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, ticks.length - 1)}
        aria-valuenow={Math.max(0, here)}
        aria-valuetext={here < 0 ? "none chosen" : tickText(ticks[here]!, zone, now)}
        onKeyDown={press}
        onClick={click}
      >
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          {isInside(now) ? (
            <rect className="coming" x={x(now)} width={width - x(now)} height={height} />
          ) : null}
          <line className="axis" x1="0" x2={width} y1={base} y2={base} />
          {ticks.map((tick, i) => {
            // The range has moved on, and the answer for it is not there yet.
            if ((tick.until ?? tick.nominal) < from || tick.nominal > to) return null;
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
                <rect
                  x={at - 2.5}
                  y={base - tall}
                  width={Math.max(5, x(tick.until ?? tick.nominal) - at)}
                  height={tall}
                />
              </g>
            );
          })}
          {picked !== undefined && isInside(picked) ? (
            <line className="picked" x1={x(picked)} x2={x(picked)} y1="0" y2={height} />
          ) : null}
          {isInside(now) ? <line className="now" x1={x(now)} x2={x(now)} y1="0" y2={height} /> : null}
        </svg>
      </div>
      <p className="ends small soft">
        <span>{shortTime(from, zone, now)}</span>
        <span>above: planned times, hollow if skipped or held, dotted if to come; below: when it ran</span>
        <span>{shortTime(to, zone, now)}</span>
      </p>
    </div>
  );
}

/** The tick that a key moves to, from a time. */
function keyTarget(key: string, ticks: readonly Tick[], at: number): Tick | undefined {
  if (key === "Home") return ticks[0];
  if (key === "End") return ticks.at(-1);
  if (key === "ArrowLeft" || key === "ArrowDown") return ticks.findLast(({ nominal }) => nominal < at);
  if (key === "ArrowRight" || key === "ArrowUp") return ticks.find(({ nominal }) => nominal > at);
  return undefined;
}
