import { shortTime } from "../../lib/time.js";
import { TableHead } from "../../parts/page.js";
import { labelOf } from "../../words.js";
import { HEIGHT, MARKS, markText, sumOf } from "./marks.js";
import { type BoardData, type BoardRow, keyOf, type Scale } from "./scale.js";

const CHART = 28;
/** Least distance between times of the axis, in px. */
const APART_PX = 72;

/** Times along the top, what was deployed, and now. */
export function Axis({
  board: { from, to, events },
  x,
  width,
  now,
  zone,
}: { board: BoardData; now: number; zone: string } & Scale) {
  const most = Math.max(2, Math.floor(width / APART_PX));
  const steps = [5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60_000);
  const step = steps.find((step) => (to - from) / step <= most) ?? 1_440 * 60_000;
  const first = Math.ceil(from / step) * step;
  const times = Array.from(
    { length: Math.max(0, Math.ceil((to - first) / step)) },
    (_, i) => first + i * step,
  );
  const isClear = (at: number, room: number) =>
    x(at) > 18 && x(at) < width - 18 && Math.abs(x(at) - x(now)) > room;
  return (
    <div className="board-row" aria-hidden="true">
      <div className="name" />
      <svg className="strip" width={width} height="34" aria-hidden="true">
        {times.map((at) => (
          <g key={at}>
            <line className="tick" x1={x(at)} x2={x(at)} y1="28" y2="34" />
            {isClear(at, 40) ? (
              <text x={x(at)} y="24" textAnchor="middle">
                {shortTime(at, zone, at)}
              </text>
            ) : null}
          </g>
        ))}
        {events.map(({ kind, at, name, by }) => (
          <path key={`${kind} ${name} ${at}`} className="event" data-kind={kind} d={`M${x(at)} 33l-4 -7h8z`}>
            <title>{`${shortTime(at, zone, now)}: ${eventText(kind, name, by)}`}</title>
          </path>
        ))}
        <line className="now" x1={x(now)} x2={x(now)} y1="16" y2="34" />
        <text className="now" x={x(now)} y="12" textAnchor="middle">
          {`now, ${shortTime(now, zone, now)}`}
        </text>
      </svg>
    </div>
  );
}

function eventText(kind: BoardData["events"][number]["kind"], name: string, by?: string): string {
  if (kind !== "deploy") return `${kind} ${name} started`;
  return `${name} was applied${by ? ` by ${by}` : ""}`;
}

const BANDS = { freeze: "frozen", "queue-paused": "queue paused", "task-paused": "paused" };

function bandText({ kind, by, note }: BoardData["bands"][number]): string {
  const what = kind === "queue-paused" ? "The queue is paused" : kind === "freeze" ? "Frozen" : "Paused";
  return `${what}${by ? ` by ${by}` : ""}${note ? `: ${note}` : ""}`;
}

/** The freezes and pauses that concern a row's tasks, and the deploys. */
export function Bands({
  board: { bands, events, to, by },
  row,
  x,
  width,
}: { board: BoardData; row: BoardRow } & Scale) {
  const own = {
    queue: row.task?.queue,
    owner: row.task?.owner,
    id: row.task?.id,
    tag: undefined,
    ...(by !== "task" && { [by]: row.name }),
  };
  const here = bands.filter((band) =>
    (["queue", "owner", "tag", "id"] as const).every(
      (part) => band[part] === undefined || band[part] === own[part],
    ),
  );
  return (
    <>
      {here.map((band) => {
        const left = Math.max(0, x(band.from));
        const right = Math.min(width, x(band.to ?? to));
        const kind = band.kind === "freeze" ? "freeze" : "pause";
        return right <= left ? null : (
          <g key={`${band.kind} ${band.from} ${band.to}`} className="band" data-kind={kind}>
            <title>{bandText(band)}</title>
            <rect x={left} width={right - left} height={HEIGHT} />
            {right - left > 70 ? (
              <text x={left + 4} y={HEIGHT - 3}>
                {BANDS[band.kind]}
              </text>
            ) : null}
          </g>
        );
      })}
      {events.map(({ kind, at, name }) => (
        <line
          key={`${kind} ${name} ${at}`}
          className="event"
          data-kind={kind}
          x1={x(at)}
          x2={x(at)}
          y1="0"
          y2={HEIGHT}
        />
      ))}
    </>
  );
}

interface ChartProps extends Scale {
  name: string;
  values: readonly number[];
  text: (value: number) => string;
  now: number;
  board: BoardData;
}

/** A number in each cell, on the scale of its largest. */
export function Chart({ name, values, text, x, width, now, board: { from, to, step } }: ChartProps) {
  const most = Math.max(...values);
  const bar = (step / (to - from)) * width;
  const label = `${name}: up to ${text(most)}`;
  return (
    <div className="board-row">
      <div className="name small soft">
        <span className="cut">{name}</span>
        <span className="nowrap">{`up to ${text(most)}`}</span>
      </div>
      <svg className="strip chart" width={width} height={CHART} role="img" aria-label={label}>
        <line className="axis" x1="0" x2={width} y1={CHART - 0.5} y2={CHART - 0.5} />
        {values.map((value, i) =>
          value === 0 ? null : (
            <rect
              // biome-ignore lint/suspicious/noArrayIndexKey: a place in time
              key={i}
              x={i * bar + 0.5}
              width={Math.max(1, bar - 1)}
              y={CHART - 1 - (value / most) * (CHART - 4)}
              height={(value / most) * (CHART - 4)}
            >
              <title>{text(value)}</title>
            </rect>
          ),
        )}
        <line className="now" x1={x(now)} x2={x(now)} y1="0" y2={CHART} />
      </svg>
    </div>
  );
}

/** The same in figures. */
export function Table({ board: { rows, by } }: { board: BoardData }) {
  return (
    <details>
      <summary className="small soft">As a table</summary>
      <div className="scroll">
        <table className="plain small">
          <TableHead of={[`${labelOf(by)}s`, ...MARKS.map((mark) => markText(mark))]} />
          <tbody>
            {rows.map((row) => (
              <tr key={keyOf(row)}>
                <th scope="row">{row.name || "no tag"}</th>
                {MARKS.map((mark) => (
                  <td key={mark}>{sumOf(row.cells, mark).toLocaleString("en")}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
