import { countText, type Display, duration } from "@carillon/ops/words";
import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { Link } from "wouter";
import { ownerPath, taskPath } from "../../lib/api.js";
import { shortTime, useNow, useZone } from "../../lib/time.js";
import { Empty } from "../../parts/page.js";
import { TaskBadge } from "../../parts/state.js";
import { Axis, Bands, Chart, Table } from "./frame.js";
import { cellText, HEIGHT, Legend, Marks, Patterns, STRIP } from "./marks.js";
import {
  type BoardData,
  type BoardRow,
  type BoardView,
  keyOf,
  NAMES,
  type SetView,
  stripWidth,
} from "./scale.js";
import { Why } from "./why.js";
import "./now.css";

/** A move of the pointer that is a drag, in px. */
const DRAG_PX = 5;

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
  if (rows.length === 0) return <Empty>There is no task yet.</Empty>;
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
                  aria-label={`${row.name || "no tag"}: ${cellText(row.cells)}. Arrow keys move, Enter explains, Shift chooses a range.`}
                  aria-valuemin={0}
                  aria-valuemax={Math.round((to - from) / step) - 1}
                  aria-valuenow={Math.floor(((isPicked ? view.at! : now) - from) / step)}
                  aria-valuetext={isPicked ? placeText(board, row, view.at!, zone, now) : "none chosen"}
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
        name="Ended"
        values={board.ended}
        text={(n) => countText(n, "run")}
        {...scale}
        now={now}
        board={board}
      />
      <Chart name="Delay" values={board.lateMs} text={duration} {...scale} now={now} board={board} />
      <div className="foot stack">
        <Legend />
        {hidden === 0 ? null : (
          <p className="small soft">{`${countText(hidden, "more row")}, with less to see.`}</p>
        )}
        <Table board={board} />
      </div>
    </div>
  );
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
  const times = `${shortTime(start, zone, now)} to ${shortTime(start + step, zone, now)}`;
  return `${times}: ${cellText(cells.filter((cell) => cell.i === i))}`;
}

function Name({ row: { name, task, display, timezone }, by }: { row: BoardRow; by: BoardData["by"] }) {
  const text = name === "" ? "no tag" : task?.owner === "system" ? task.id : name;
  const list = by === "owner" ? ownerPath(name) : `/tasks?${by}=${encodeURIComponent(name)}`;
  const href = task ? taskPath(task) : name === "" ? undefined : list;
  return (
    <div className="name">
      {href === undefined ? (
        <span className="soft">{text}</span>
      ) : (
        <Link href={href} data-row className="cut" title={task ? `${task.queue}/${name}` : name}>
          {text}
        </Link>
      )}
      {display === undefined || ["due", "never-due", "over"].includes(display.code) ? null : (
        <span className="cut small">
          <TaskBadge display={display as Display} timezone={timezone} />
        </span>
      )}
    </div>
  );
}
