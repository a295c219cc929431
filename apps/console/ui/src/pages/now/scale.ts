import type { AnswerTo } from "@carillon/ops";
import { type RefCallback, useCallback, useRef, useState } from "react";
import { taskPath } from "../../lib/api.js";

export type BoardData = AnswerTo<"occurrences.board">;
export type BoardRow = BoardData["rows"][number];
export type BoardCell = BoardRow["cells"][number];

/** The choice on the board, which is a part of the address. Times in UTC ms. */
export interface BoardView {
  /** The row and the place whose answer is shown. */
  readonly row: string | undefined;
  readonly at: number | undefined;
  /** The range that the lists below show. */
  readonly from: number | undefined;
  readonly to: number | undefined;
}
export type SetView = (changes: Partial<BoardView>) => void;

/** The place of a time, and the width of a strip, in px. */
export interface Scale {
  readonly x: (at: number) => number;
  readonly width: number;
}

/** Ids of rows must differ: two tasks of one name may be in two queues. */
export function keyOf({ name, task }: BoardRow): string {
  return task ? taskPath(task) : name;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const LENGTHS: Readonly<Record<string, number>> = { "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR };
const STEPS = [
  10 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
];
/** Least width of a cell, in px: marks must stay apart. */
const CELL_PX = 6;
/** Width of the names left of the strips, and the page width up to which names stand above them, in px. */
export const NAMES = { width: 176, narrow: 560 };

/** A time on both sides of now, in cells that the width has room for. It moves by a cell at a time. */
export function spanOf(name: string, width: number, now: number): { from: number; to: number; step: number } {
  const length = LENGTHS[name] ?? 6 * HOUR;
  const room = Math.max(20, stripWidth(width) / CELL_PX);
  const step = STEPS.find((step) => (2 * length) / step <= room) ?? HOUR;
  const middle = Math.floor(now / step) * step;
  return { from: middle - length, to: middle + length, step };
}

export function stripWidth(width: number): number {
  return Math.max(0, width - 16 - (width <= NAMES.narrow ? 0 : NAMES.width));
}

/** The width of an element in whole px; 0: not known yet. */
export function useWidth(): [RefCallback<HTMLElement>, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver>(undefined);
  const ref = useCallback((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (!element) return;
    const measure = () => setWidth((was) => Math.floor(element.clientWidth) || was);
    measure();
    observer.current = new ResizeObserver(measure);
    observer.current.observe(element);
  }, []);
  return [ref, width];
}
