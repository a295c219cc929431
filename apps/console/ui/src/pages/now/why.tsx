import { useState } from "react";
import { type Named, refOf, shortName, taskPath } from "../../lib/api.js";
import { useCall } from "../../lib/query.js";
import { shortTime, useNow, useZone } from "../../lib/time.js";
import { Button } from "../../parts/button.js";
import { Answer } from "../../parts/explain.js";
import { Empty, Loaded } from "../../parts/page.js";
import { type Tick, tickText, toneOfTick } from "../../parts/ticks.js";
import { cellText } from "./marks.js";
import type { BoardData, BoardRow, SetView } from "./scale.js";

/** Choices that are offered. */
const MOST = 12;
/** Runs that began in a cell may be planned up to this long before it, in ms. */
const BEFORE = 600_000;
const WORST = ["bad", "skip", "warn", "run", "none", "ok"];

interface Props {
  board: BoardData;
  row: BoardRow;
  at: number;
  set: SetView;
}

/** The answer to "why?" at a place of the board, below its row: first which task, if the row is a group. */
export function Why({ board: { from, step, by }, row, at, set }: Props) {
  const start = from + Math.floor((at - from) / step) * step;
  const cell = { from: start, to: start + step };
  return (
    <section className="why" aria-label="Why">
      <Button
        look="icon"
        aria-label="Close the answer"
        title="Close the answer"
        onClick={() => set({ row: undefined, at: undefined })}
      >
        ×
      </Button>
      {row.task ? (
        <OfTask key={taskPath(row.task)} task={row.task} cell={cell} at={at} />
      ) : (
        <OfGroup key={`${row.name} ${start}`} by={by} name={row.name} cell={cell} at={at} />
      )}
    </section>
  );
}

interface Cell {
  readonly from: number;
  readonly to: number;
}

function OfGroup({ by, name, cell, at }: { by: BoardData["by"]; name: string; cell: Cell; at: number }) {
  const [chosen, choose] = useState<string | undefined>();
  const here = useCall("occurrences.board", {
    ...{ ...cell, step: cell.to - cell.from, by: "task" },
    ...(name !== "" && { [by]: name }),
  });
  return (
    <Loaded of={here}>
      {({ rows, hidden }) => {
        const busy = rows.filter(({ cells }) => cells.length > 0);
        const shown = (busy.length > 0 ? busy : rows).slice(0, MOST);
        const task = (shown.find((row) => row.task && taskPath(row.task) === chosen) ?? shown[0])?.task;
        if (task === undefined) return <Empty>nothing</Empty>;
        return (
          <div className="stack">
            <p className="chips">
              {shown.map((row) =>
                row.task === undefined ? null : (
                  <button
                    key={taskPath(row.task)}
                    type="button"
                    className="chip"
                    aria-pressed={row.task === task}
                    onClick={() => choose(taskPath(row.task as Named))}
                  >
                    {shortName(row.task)}
                    {row.cells.length === 0 ? "" : `: ${cellText(row.cells)}`}
                  </button>
                ),
              )}
              {hidden + rows.length > shown.length ? (
                <span className="small soft">{`and ${(hidden + rows.length - shown.length).toLocaleString("en")} more`}</span>
              ) : null}
            </p>
            <OfTask key={taskPath(task)} task={task} cell={cell} at={at} />
          </div>
        );
      }}
    </Loaded>
  );
}

/** The worst occurrence of the cell, a choice of the others, and an answer for an empty place too. */
function OfTask({ task, cell, at }: { task: Named; cell: Cell; at: number }) {
  const zone = useZone();
  const now = useNow();
  const [picked, pick] = useState<number | undefined>();
  const ticks = useCall("occurrences.ticks", { ...refOf(task), from: cell.from - BEFORE, to: cell.to - 1 });
  return (
    <Loaded of={ticks}>
      {({ ticks }) => {
        const here = ticks.filter(
          ({ nominal, started = nominal }) => isIn(cell, nominal) || isIn(cell, started),
        );
        const worst = here.toSorted((a, b) => rank(a) - rank(b))[0]?.nominal;
        const shown = picked ?? worst ?? Math.round(at / 1_000) * 1_000;
        return (
          <div className="stack">
            {here.length < 2 ? null : (
              <p className="chips">
                {here.slice(0, MOST).map((tick) => (
                  <button
                    key={`${tick.nominal} ${tick.run}`}
                    type="button"
                    className="chip"
                    aria-pressed={tick.nominal === shown}
                    title={tickText(tick, zone, now)}
                    onClick={() => pick(tick.nominal)}
                  >
                    {shortTime(tick.nominal, zone, now)}
                  </button>
                ))}
                {here.length > MOST ? (
                  <span className="small soft">{`and ${(here.length - MOST).toLocaleString("en")} more`}</span>
                ) : null}
              </p>
            )}
            <Answer task={task} at={shown} onPick={pick} />
          </div>
        );
      }}
    </Loaded>
  );
}

function isIn({ from, to }: Cell, at: number): boolean {
  return at >= from && at < to;
}

function rank(tick: Tick): number {
  return WORST.indexOf(toneOfTick(tick));
}
