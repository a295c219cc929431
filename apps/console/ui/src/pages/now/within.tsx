import { duration } from "@carillon/ops/words";
import { Link } from "wouter";
import { runPath, shortName, taskPath } from "../../lib/api.js";
import { useCall } from "../../lib/query.js";
import { Button } from "../../parts/button.js";
import { Loaded, Panel, Row, Rows } from "../../parts/page.js";
import { Badge, RunBadge } from "../../parts/state.js";
import { Time } from "../../parts/time.js";
import type { BoardData, BoardView, SetView } from "./scale.js";

/** Cells of the range, all whole: those of the board are of whole 10 s. */
const CELLS = 10;

type OnBoard = BoardData["runs"]["newest"][number];

/** The events of the range that is chosen on the board; else of the past that it shows. */
export function Within({
  board,
  owner,
  view: { from, to },
  set,
}: {
  board: BoardData;
  owner: string | undefined;
  view: BoardView;
  set: SetView;
}) {
  const range = from !== undefined && to !== undefined && to > from ? { from, to } : undefined;
  const step = range && Math.max(1_000, Math.ceil((range.to - range.from) / CELLS));
  const chosen = useCall("occurrences.board", range && { ...range, step, by: board.by, owner });
  const shown = range === undefined ? { data: board, error: null } : chosen;
  const of = owner === undefined ? "" : `&owner=${encodeURIComponent(owner)}`;
  const { from: start, to: end } = range ?? { from: board.from, to: Number.POSITIVE_INFINITY };
  return (
    <section className="stack" aria-labelledby="within">
      <div className="inline">
        <h2 id="within">
          <Time at={start} /> – {range === undefined ? "now" : <Time at={end} after={start} />}
        </h2>
        {range === undefined ? (
          <span className="small soft">Drag over the board to choose a time.</span>
        ) : (
          <>
            <Button look="plain" onClick={() => set({ from: undefined, to: undefined })}>
              Show all of the past
            </Button>
            <Link href={`/errors?from=${range.from}&to=${range.to}${of}`}>Errors of this time</Link>
          </>
        )}
      </div>
      <Loaded of={shown}>
        {({ runs, skips, sums }) => (
          <div className="panels even">
            <Runs
              title={`Failures (${sums.failed.toLocaleString("en")})`}
              of={runs.failed}
              none="No run failed."
            />
            <Panel title={`Skips (${(sums.skipped + sums.missed).toLocaleString("en")})`}>
              <Rows of={skips} none="Nothing was skipped.">
                {({ task, timezone, reason, from, to }) => (
                  <Row
                    key={`${taskPath(task)} ${from}`}
                    href={`${taskPath(task)}?explain=${from}`}
                    name={shortName(task)}
                  >
                    <Badge tone="skip">{reason}</Badge>
                    <span className="end soft">
                      <Time at={from} own={timezone} />
                      {to === from ? null : (
                        <>
                          {" – "}
                          <Time at={to} after={from} own={timezone} />
                        </>
                      )}
                    </span>
                  </Row>
                )}
              </Rows>
            </Panel>
            <Runs title="Slowest" of={runs.slowest} none="No run ended." />
          </div>
        )}
      </Loaded>
    </section>
  );
}

function Runs({ title, of, none }: { title: string; of: readonly OnBoard[]; none: string }) {
  return (
    <Panel title={title}>
      <Rows of={of} none={none}>
        {({ run, task, timezone, outcome, durationMs, started, nominal }) => (
          <Row key={run} href={runPath(run)} name={shortName(task)}>
            <RunBadge run={{ state: started === undefined ? "queued" : "running", outcome }} />
            {durationMs === undefined ? null : <span>{duration(durationMs)}</span>}
            <span className="end soft">
              <Time at={started ?? nominal} own={timezone} />
            </span>
          </Row>
        )}
      </Rows>
    </Panel>
  );
}
