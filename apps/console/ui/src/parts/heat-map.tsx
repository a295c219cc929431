import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { hoursOf, levelOf, limitsOf } from "../lib/heat.js";
import { shortTime, useNow, useZone } from "../lib/time.js";
import { Scroll } from "./page.js";
import "./heat-map.css";

const MINUTE = 60_000;

interface Props {
  /** Load in steps of a minute. */
  load: AnswerTo<"occurrences.load">;
  /** Called with the start of a minute. */
  onPick: (at: number) => void;
  picked: number | undefined;
}

/** Load by minute: a row is an hour, with its sum in figures; the shade of a cell is its number of starts. */
export function HeatMap({ load: { from, counts, total, tasks, busiest }, onPick, picked }: Props) {
  const zone = useZone();
  const now = useNow();
  const most = busiest[0];
  const limits = limitsOf(counts);
  const peaks = new Set(busiest.map(({ at }) => at));
  const text = [
    `${countText(total, "start")} of ${countText(tasks, "task")}`,
    most &&
      `most in one minute: ${most.count.toLocaleString("en")}, ${counts.filter((n) => n === most.count).length === 1 ? "at" : `in ${counts.filter((n) => n === most.count).length.toLocaleString("en")} minutes, the first at`} ${shortTime(most.at, zone, now)}`,
  ];
  return (
    <div className="body stack">
      <p>{text.filter(Boolean).join("; ")}</p>
      <Scroll label="Planned starts, minute by minute">
        <table className="heat">
          <thead>
            <tr className="small soft">
              <th scope="col">Hour</th>
              <th scope="col" className="minutes">
                <span>:00</span>
                <span>:15</span>
                <span>:30</span>
                <span>:45</span>
              </th>
              <th scope="col" className="right">
                Sum
              </th>
            </tr>
          </thead>
          <tbody>
            {hoursOf(from, counts, zone).map(({ at, within, sum }) => (
              <tr key={at}>
                <th scope="row" className="small nowrap">
                  {shortTime(at, zone, now).slice(-5)}
                </th>
                <td>
                  {/* biome-ignore lint/a11y/useKeyWithClickEvents: the form below it does the same from the keyboard */}
                  <svg
                    viewBox="0 0 60 1"
                    preserveAspectRatio="none"
                    role="img"
                    aria-label={`${shortTime(at, zone, now)}: ${countText(sum, "start")}`}
                    onClick={(event) => {
                      const { left, width } = event.currentTarget.getBoundingClientRect();
                      const minute = Math.floor(((event.clientX - left) / width) * 60);
                      if (within.some((cell) => cell.at === at + minute * MINUTE))
                        onPick(at + minute * MINUTE);
                    }}
                  >
                    {within.map((cell) => (
                      <rect
                        key={cell.at}
                        data-level={levelOf(cell.count, limits)}
                        data-picked={cell.at === picked || undefined}
                        data-peak={peaks.has(cell.at) || undefined}
                        x={(cell.at - at) / MINUTE}
                        y="0"
                        width="1"
                        height="1"
                      >
                        <title>{`${shortTime(cell.at, zone, now)}: ${countText(cell.count, "start")}`}</title>
                      </rect>
                    ))}
                  </svg>
                </td>
                <td className="small right">{sum.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Scale limits={limits} />
    </div>
  );
}

/** Shades and their numbers. */
function Scale({ limits }: { limits: readonly number[] }) {
  const shown = [0, ...limits];
  return (
    <p className="inline small soft">
      Starts a minute:
      {shown.map((limit, level) => {
        const least = level === 0 ? 0 : (shown[level - 1] ?? 0) + 1;
        if (least > limit) return null;
        return (
          <span key={limit} className="inline">
            <svg className="heat-key" viewBox="0 0 1 1" aria-hidden="true">
              <rect data-level={level === 0 ? 0 : levelOf(limit, limits)} width="1" height="1" />
            </svg>
            {least === limit
              ? limit.toLocaleString("en")
              : `${least.toLocaleString("en")}–${limit.toLocaleString("en")}`}
          </span>
        );
      })}
    </p>
  );
}
