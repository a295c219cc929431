import { duration } from "@carillon/ops/words";
import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { Link } from "wouter";
import { taskPath } from "../../lib/api.js";
import { shortTime, useNow, useZone } from "../../lib/time.js";
import { Empty, TableHead } from "../../parts/page.js";
import { words } from "../../words.js";
import { ACTUAL, cellText, Legend, Marks, Patterns, STRIP } from "./marks.js";
import { type BoardData, type BoardRow, type BoardView, NAMES, type SetView, stripWidth } from "./scale.js";
import { Why } from "./why.js";
import "./now.css";

const w = words.now;
const HEIGHT = STRIP.above + STRIP.below + 4;
const CHART = 28;
/** Least distance between times of the axis, and a pointer's move that is a drag, in px. */
const [APART_PX, DRAG_PX] = [72, 5];

interface Props {
  board: BoardData;
  width: number;
  view: BoardView;
  set: SetView;
}

/**
 * One strip a row, with planned occurrences above its line, actual ones below, and now in the middle. A click or Enter explains a place; a
 * drag, or Shift with the arrow keys, chooses a range.
 */
export function Board({ board, width: whole, view, set }: Props) {
  const zone = useZone();
  const now = useNow();
  const { from, to, step, rows, hidden, by } = board;
  const width = stripWidth(whole);
  const scale = { x: (at: number) => ((at - from) / (to - from)) * width, width };
  const [drag, setDrag] = useState<{ start: number; end: number } | undefined>();
  const [active, setActive] = useState(0);
  const list = useRef<HTMLOListElement>(null);
  if (rows.length === 0) return <Empty>{w.empty}</Empty>;
  const range =
    drag ??
    (view.from !== undefined && view.to !== undefined ? { start: view.from, end: view.to } : undefined);
  const snapped = ({ start, end }: { start: number; end: number }) => ({
    from: from + Math.floor((Math.min(start, end) - from) / step) * step,
    to: from + Math.ceil((Math.max(start, end) - from) / step) * step,
  });
  const pick = (row: BoardRow, at: number) => set({ row: keyOf(row), at: Math.round(at) });
  const press = (row: BoardRow, i: number) => (event: KeyboardEvent) => {
    const at = view.at ?? now;
    const { key, shiftKey } = event;
    if (key === "Escape") return set({ row: undefined, at: undefined, from: undefined, to: undefined });
    if (key === "ArrowUp" || key === "ArrowDown") {
      event.preventDefault();
      const next = Math.min(rows.length - 1, Math.max(0, i + (key === "ArrowUp" ? -1 : 1)));
      setActive(next);
      return list.current?.querySelectorAll<HTMLElement>("[role=slider]")[next]?.focus();
    }
    const here = Math.floor((at - from) / step);
    const target = targetOf(key, row, here, Math.floor((now - from) / step));
    if (target === undefined) return;
    event.preventDefault();
    const middle = from + (target + 0.5) * step;
    if (!shiftKey) return pick(row, middle);
    const anchor =
      view.from === undefined || view.to === undefined ? at : view.from < at ? view.from : view.to - 1;
    return set({ ...snapped({ start: anchor, end: middle }), at: Math.round(middle), row: keyOf(row) });
  };
  const pointer = (row: BoardRow, i: number) => {
    const timeOf = (event: PointerEvent) =>
      from + ((event.clientX - event.currentTarget.getBoundingClientRect().left) / width) * (to - from);
    return {
      onPointerDown(event: PointerEvent) {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setActive(i);
        setDrag({ start: timeOf(event), end: timeOf(event) });
      },
      onPointerMove(event: PointerEvent) {
        if (drag) setDrag({ ...drag, end: Math.min(to, Math.max(from, timeOf(event))) });
      },
      onPointerCancel: () => setDrag(undefined),
      onPointerUp() {
        if (!drag) return;
        setDrag(undefined);
        if (Math.abs(scale.x(drag.end) - scale.x(drag.start)) > DRAG_PX) set(snapped(drag));
        else pick(row, drag.end);
      },
    };
  };
  return (
    <div className="board" data-narrow={whole <= NAMES.narrow || undefined}>
      <Patterns />
      <Axis board={board} {...scale} now={now} zone={zone} />
      <ol ref={list}>
        {rows.map((row, i) => {
          const isPicked = view.row === keyOf(row) && view.at !== undefined;
          return (
            <li key={keyOf(row)}>
              <div className="board-row">
                <Name row={row} by={by} />
                <div
                  role="slider"
                  tabIndex={i === Math.min(active, rows.length - 1) ? 0 : -1}
                  aria-label={`${row.name || w.untagged}: ${cellText(row.cells)}. ${w.keys}`}
                  aria-valuemin={0}
                  aria-valuemax={Math.round((to - from) / step) - 1}
                  aria-valuenow={Math.floor(((isPicked ? view.at! : now) - from) / step)}
                  aria-valuetext={
                    isPicked ? placeText(board, row, view.at!, zone, now) : words.ticks.noneChosen
                  }
                  onKeyDown={press(row, i)}
                  {...pointer(row, i)}
                >
                  <svg className="strip" width={width} height={HEIGHT} aria-hidden="true">
                    <Bands board={board} row={row} {...scale} />
                    <line className="axis" x1="0" x2={width} y1={STRIP.above + 1} y2={STRIP.above + 1} />
                    {row.cells.map((cell) => (
                      <g key={cell.i}>
                        <title>{placeText(board, row, from + cell.i * step, zone, now)}</title>
                        <Marks
                          cell={cell}
                          x={scale.x(from + cell.i * step)}
                          width={(step / (to - from)) * width}
                          isPast={from + cell.i * step <= now}
                        />
                      </g>
                    ))}
                    {range === undefined ? null : (
                      <rect
                        className="range"
                        x={Math.max(0, scale.x(Math.min(range.start, range.end)))}
                        width={Math.abs(scale.x(range.end) - scale.x(range.start))}
                        height={HEIGHT}
                      />
                    )}
                    <line className="now" x1={scale.x(now)} x2={scale.x(now)} y1="0" y2={HEIGHT} />
                    {isPicked ? (
                      <line
                        className="picked"
                        x1={scale.x(view.at!)}
                        x2={scale.x(view.at!)}
                        y1="0"
                        y2={HEIGHT}
                      />
                    ) : null}
                  </svg>
                </div>
              </div>
              {isPicked ? <Why board={board} row={row} at={view.at!} set={set} /> : null}
            </li>
          );
        })}
      </ol>
      <Chart
        name={w.ended}
        values={board.ended}
        text={(n) => words.runs(n)}
        {...scale}
        now={now}
        board={board}
      />
      <Chart name={w.lateness} values={board.lateMs} text={duration} {...scale} now={now} board={board} />
      <div className="foot stack">
        <Legend />
        {hidden === 0 ? null : <p className="small soft">{w.hidden(hidden)}</p>}
        <Table board={board} />
      </div>
    </div>
  );
}

interface Scale {
  x: (at: number) => number;
  width: number;
}

/** Ids of rows must differ: two tasks of one name may be in two queues. */
export function keyOf({ name, task }: BoardRow): string {
  return task ? taskPath(task) : name;
}

/** The cell that a key moves to: the next one with a mark, or the first or last; Enter and space stay. */
function targetOf(key: string, { cells }: BoardRow, here: number, now: number): number | undefined {
  if (key === "Home") return cells[0]?.i;
  if (key === "End") return cells.at(-1)?.i;
  if (key === "ArrowLeft") return cells.findLast(({ i }) => i < here)?.i;
  if (key === "ArrowRight") return cells.find(({ i }) => i > here)?.i;
  if (key === "Enter" || key === " ") return here >= 0 ? here : now;
  return undefined;
}

function placeText(
  { from, step }: BoardData,
  { cells }: BoardRow,
  at: number,
  zone: string,
  now: number,
): string {
  const i = Math.floor((at - from) / step);
  const start = from + i * step;
  const times = w.fromTo(shortTime(start, zone, now), shortTime(start + step, zone, now));
  return `${times}: ${cellText(cells.filter((cell) => cell.i === i))}`;
}

function Name({ row: { name, task }, by }: { row: BoardRow; by: BoardData["by"] }) {
  const text = name === "" ? w.untagged : task?.owner === "system" ? task.id : name;
  const href = task ? taskPath(task) : name === "" ? undefined : `/tasks?${by}=${encodeURIComponent(name)}`;
  return (
    <div className="name">
      {href === undefined ? (
        <span className="soft">{text}</span>
      ) : (
        <Link href={href} data-row className="cut" title={task ? `${task.queue}/${name}` : name}>
          {text}
        </Link>
      )}
    </div>
  );
}

/** Times along the top, what was deployed, and now. */
function Axis({
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
            <title>{`${shortTime(at, zone, now)}: ${w.events[kind](name, by)}`}</title>
          </path>
        ))}
        <line className="now" x1={x(now)} x2={x(now)} y1="16" y2="34" />
        <text className="now" x={x(now)} y="12" textAnchor="middle">
          {w.now(shortTime(now, zone, now))}
        </text>
      </svg>
    </div>
  );
}

/** The freezes and pauses that concern a row's tasks, and the deploys. */
function Bands({
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
          <g key={`${band.kind} ${band.from}`} className="band" data-kind={kind}>
            <title>{w.bands[band.kind](band.by, band.note)}</title>
            <rect x={left} width={right - left} height={HEIGHT} />
            {right - left > 70 ? (
              <text x={left + 4} y={HEIGHT - 3}>
                {w.bandNames[band.kind]}
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
function Chart({ name, values, text, x, width, now, board: { from, to, step } }: ChartProps) {
  const most = Math.max(...values);
  const bar = (step / (to - from)) * width;
  const label = `${name}: ${w.atMost(text(most))}`;
  return (
    <div className="board-row">
      <div className="name small soft">
        <span className="cut">{name}</span>
        <span className="nowrap">{w.atMost(text(most))}</span>
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
function Table({ board: { rows, by } }: { board: BoardData }) {
  const sum = ({ cells }: BoardRow, mark: "planned" | "overdue" | (typeof ACTUAL)[number]) =>
    cells.reduce((sum, cell) => sum + (cell[mark] ?? 0), 0);
  const marks = ["planned", "overdue", ...ACTUAL] as const;
  return (
    <details>
      <summary className="small soft">{w.table}</summary>
      <div className="scroll">
        <table className="plain small">
          <TableHead of={[w.by[by], ...marks.map((mark) => w.marks[mark])]} />
          <tbody>
            {rows.map((row) => (
              <tr key={keyOf(row)}>
                <th scope="row">{row.name || w.untagged}</th>
                {marks.map((mark) => (
                  <td key={mark}>{sum(row, mark).toLocaleString("en")}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
