import type { BoardCell } from "./scale.js";

/** Marks below the line, from the line down. */
const ACTUAL = ["onTime", "backfilled", "late", "open", "failed", "missed", "skipped"] as const;
/** All marks, in the order of the legend. */
export const MARKS = ["planned", "overdue", ...ACTUAL] as const;
type Mark = (typeof MARKS)[number];

/** Heights of a strip in px: of planned and actual occurrences, and of the least mark. */
export const STRIP = { above: 18, below: 26, least: 8 };
export const HEIGHT = STRIP.above + STRIP.below + 4;

/** Grows with the logarithm of a count: one occurrence is seen beside a thousand. */
const share = (count: number) => Math.min(1, Math.log10(count + 1) / 3);

/** The marks of one cell: planned above the line, actual below it. */
export function Marks({
  cell,
  x,
  width,
  isPast,
}: {
  cell: BoardCell;
  x: number;
  width: number;
  isPast: boolean;
}) {
  const { above, below, least } = STRIP;
  const bar = Math.max(2, Math.min(width - 1.5, 14));
  const left = x + (width - bar) / 2;
  const { planned = 0, overdue = 0 } = cell;
  const up = planned + overdue;
  const tall = least + share(up) * (above - least);
  const here = ACTUAL.filter((mark) => cell[mark]);
  const total = here.reduce((sum, mark) => sum + (cell[mark] ?? 0), 0);
  const room = Math.max(here.length * least, least + share(total) * (below - least));
  const spare = room - here.length * least;
  let y = above + 2;
  return (
    <>
      {up === 0 ? null : (
        <rect
          data-mark={overdue > 0 ? "overdue" : isPast ? "planned" : "coming"}
          x={left + 0.5}
          y={above - tall}
          width={bar - 1}
          height={tall}
        />
      )}
      {here.map((mark) => {
        const height = least + (spare * (cell[mark] ?? 0)) / total - 1;
        const top = y;
        y += height + 1;
        return <Shape key={mark} mark={mark} x={left} y={top} width={bar} height={height} />;
      })}
    </>
  );
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A mark has a shape of its own besides its colour. */
function Shape({ mark, x, y, width, height }: { mark: Mark } & Box) {
  const [right, bottom, middle] = [x + width, y + height, x + width / 2];
  switch (mark) {
    case "failed":
      // Points down.
      return (
        <path
          data-mark={mark}
          d={`M${x} ${y}H${right}V${bottom - 3}L${middle} ${bottom + 1}L${x} ${bottom - 3}Z`}
        />
      );
    case "missed":
      return (
        <path
          data-mark={mark}
          d={`M${x + 0.5} ${y + 0.5}H${right - 0.5}V${bottom - 0.5}H${x + 0.5}ZL${right - 0.5} ${bottom - 0.5}M${right - 0.5} ${y + 0.5}L${x + 0.5} ${bottom - 0.5}`}
        />
      );
    case "backfilled":
    case "skipped":
      return (
        <rect data-mark={mark} x={x + 0.5} y={y + 0.5} width={width - 1} height={Math.max(1, height - 1)} />
      );
    default:
      return <rect data-mark={mark} x={x} y={y} width={width} height={height} />;
  }
}

/** The patterns of the board's marks and bands, once a page. */
export function Patterns() {
  return (
    <svg width="0" height="0" className="unseen" aria-hidden="true">
      <defs>
        {(["late", "freeze", "pause"] as const).map((name) => (
          <pattern
            key={name}
            id={`board-${name}`}
            width={name === "late" ? 4 : 8}
            height={name === "late" ? 4 : 8}
            patternUnits="userSpaceOnUse"
            patternTransform={name === "pause" ? undefined : `rotate(${name === "late" ? 45 : -45})`}
          >
            <rect data-pattern={name} className="ground" width="8" height="8" />
            <rect data-pattern={name} width={name === "late" ? 2 : 1} height="8" />
          </pattern>
        ))}
        <pattern id="board-open" width="4" height="4" patternUnits="userSpaceOnUse">
          <rect data-pattern="open" width="4" height="2" />
        </pattern>
      </defs>
    </svg>
  );
}

/** Each mark with its name. */
export function Legend() {
  return (
    <ul className="board-legend small soft" aria-label="Marks: planned above the line, actual below it">
      {MARKS.map((mark) => (
        <li key={mark}>
          <svg width="12" height="14" aria-hidden="true" className="strip">
            {mark === "planned" || mark === "overdue" ? (
              <rect data-mark={mark} x="2.5" y="2.5" width="7" height="9" />
            ) : (
              <Shape mark={mark} x={2} y={2} width={8} height={10} />
            )}
          </svg>
          {markText(mark)}
        </li>
      ))}
    </ul>
  );
}

export function markText(mark: Mark): string {
  return mark === "onTime" ? "on time" : mark === "open" ? "running or waiting" : mark;
}

export function sumOf(cells: readonly BoardCell[], mark: Mark): number {
  return cells.reduce((sum, cell) => sum + (cell[mark] ?? 0), 0);
}

/** A cell, or the sum of several, in words. */
export function cellText(cells: readonly BoardCell[]): string {
  const text = MARKS.flatMap((mark) => {
    const n = sumOf(cells, mark);
    return n === 0 ? [] : [`${n.toLocaleString("en")} ${markText(mark)}`];
  });
  return text.length === 0 ? "nothing" : text.join(", ");
}
