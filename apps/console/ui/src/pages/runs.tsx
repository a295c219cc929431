import { duration, FAILURES } from "@carillon/ops/words";
import type { Outcome } from "@carillon/sdk";
import { Link, useSearchParams } from "wouter";
import { runPath, shortName } from "../lib/api.js";
import { useCall, usePages } from "../lib/query.js";
import { Chips } from "../parts/button.js";
import { Empty, Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { RunRows } from "../parts/run-rows.js";
import { Badge } from "../parts/state.js";
import { words } from "../words.js";

const w = words.runs_;
const CHIPS = {
  all: undefined,
  failed: [...FAILURES],
  succeeded: ["succeeded", "partial", "nothing-to-do"],
  others: ["cancelled", "dropped"],
} as const satisfies Record<string, readonly Outcome[] | undefined>;
type Chip = keyof typeof CHIPS;

/** Runs under way, and ended runs, newest first. */
export default function Runs() {
  const [params, setParams] = useSearchParams();
  const chip = (Object.hasOwn(CHIPS, params.get("filter") ?? "") ? params.get("filter") : "all") as Chip;
  const names = Object.fromEntries(
    ["task", "owner", "queue", "node"].map((name) => [name, params.get(name)]),
  );
  const given = Object.fromEntries(Object.entries(names).filter(([, value]) => value)) as Record<
    string,
    string
  >;
  const pages = usePages("runs.journal", {
    ...given,
    outcome: CHIPS[chip],
    limit: 50,
  });
  return (
    <>
      <PageHead title={w.title} />
      <div className="stack">
        <UnderWay />
        <Panel title={w.ended}>
          <div className="body inline">
            <div className="chips">
              <Chips
                names={Object.keys(CHIPS) as Chip[]}
                text={(name) => w.chips[name]}
                chosen={chip}
                onPick={(name) =>
                  setParams((was) => {
                    const now = new URLSearchParams(was);
                    if (name === "all") now.delete("filter");
                    else now.set("filter", name);
                    return now;
                  })
                }
              />
            </div>
            {Object.entries(given).map(([name, value]) => (
              <Badge key={name}>
                {name}: {value}
              </Badge>
            ))}
            {Object.keys(given).length === 0 ? null : <Link href="/runs">{words.list.clear}</Link>}
          </div>
          <Loaded of={pages}>
            {({ pages: read }) => {
              const runs = read.flatMap(({ runs }) => runs);
              return (
                <>
                  {runs.length === 0 ? <Empty>{w.none}</Empty> : <RunRows runs={runs} withTask />}
                  <More of={pages}>{w.more}</More>
                </>
              );
            }}
          </Loaded>
        </Panel>
      </div>
    </>
  );
}

function UnderWay() {
  const runs = useCall("runs.active", { limit: 50 });
  return (
    <Panel title={words.now.running}>
      <Loaded of={runs}>
        {({ runs }) => (
          <Rows of={runs} none={words.now.noneRunning}>
            {({ id, task, host, worker, runningMs, usualMs }) => (
              <li key={id}>
                <Link href={runPath(id)} data-row>
                  {shortName(task)}
                </Link>
                <span className="soft small">{host ?? worker}</span>
                <span className="end soft">
                  {duration(runningMs)}
                  {usualMs === undefined ? "" : ` (${w.usually(duration(usualMs))})`}
                </span>
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}
