import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useBeside } from "../lib/beside.js";
import { useRowHeight } from "../lib/looks.js";
import { useMedia } from "../lib/store.js";
import { Changing } from "./changing.js";

export interface Column<Row> {
  readonly key: string;
  readonly head: ReactNode;
  /** CSS width of the column: `8rem`, `minmax(0, 2fr)`. */
  readonly width: string;
  readonly cell: (row: Row, index: number, rows: readonly Row[]) => ReactNode;
  /** Hidden on narrow screens. */
  readonly wide?: boolean;
}

interface Props<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  /** State of a row as one text: when it changes, the row fades. */
  stateOf?: (row: Row) => string;
  /** Called when the last rows come into view. */
  onEnd?: (() => void) | undefined;
}

const NARROW = matchMedia("(max-width: 56rem)");
const PRINT = matchMedia("print");

/** A table of any length: only the rows in view are in the page, and all that were read on paper. Mark the main link of a row with `data-row`. */
export function VirtualTable<Row>({ label, rows, columns, rowKey, stateOf, onEnd }: Props<Row>) {
  const height = useRowHeight();
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  const beside = useBeside();
  const narrow = useMedia(NARROW) || beside !== undefined;
  const printed = useMedia(PRINT);
  useLayoutEffect(() => {
    // Elements above the table appear and disappear.
    const at = (body.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
    if (Math.abs(at - top) > 1) setTop(at);
  });
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: printed ? rows.length : 12,
    scrollMargin: top,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when rows get another height
  useLayoutEffect(() => virtual.measure(), [virtual, height]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= rows.length - 1) onEnd?.();
  }, [last, rows.length, onEnd]);
  const shown = columns.filter(({ wide }) => !(narrow && wide));
  const style = { "--columns": shown.map(({ width }) => width).join(" ") } as React.CSSProperties;
  return (
    <table className="vtable" aria-label={label} aria-rowcount={rows.length + 1} style={style}>
      <thead>
        <tr className="vhead" aria-rowindex={1}>
          {shown.map(({ key, head }) => (
            <th scope="col" key={key}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body} style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => {
          const row = rows[index]!;
          const at = { height: `${height}px`, transform: `translateY(${start - top}px)` };
          return (
            <Changing
              as="tr"
              state={stateOf?.(row)}
              className="vrow"
              key={rowKey(row)}
              aria-rowindex={index + 2}
              style={at}
            >
              {shown.map(({ key, cell }) => (
                <td key={key}>{cell(row, index, rows)}</td>
              ))}
            </Changing>
          );
        })}
      </tbody>
    </table>
  );
}
