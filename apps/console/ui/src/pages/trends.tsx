import type { AnswerTo, InputTo } from "@carillon/ops";
import { countText, type TrendFigure, trendText } from "@carillon/ops/words";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { shortName, taskPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { changed, timeIn } from "../lib/request.js";
import { useZone } from "../lib/time.js";
import { Chips } from "../parts/button.js";
import { Check } from "../parts/confirm.js";
import { CopyAs } from "../parts/copy-as.js";
import { Filters } from "../parts/filters.js";
import { Empty, Loaded, PageHead, Panel, Scroll } from "../parts/page.js";
import { asTexts, Ranges } from "../parts/ranges.js";
import { Time } from "../parts/time.js";
import "./trends.css";

type Trends = AnswerTo<"runs.trends">;
type Row = Trends["rows"][number];
type Asked = InputTo<"runs.trends">;

const BYS = ["task", "owner", "queue", "tag"] as const;
const FIELDS = ["owner", "queue", "tag"] as const;
const COLUMNS = {
  name: "Of",
  runs: "Runs",
  share: "Succeeded",
  p50: "p50",
  p95: "p95",
  late: "Late",
  skipped: "Skipped",
} as const;
type Column = keyof typeof COLUMNS;
const NAMES = Object.keys(COLUMNS) as Column[];
const HINTS: Partial<Record<Column, string>> = {
  p50: "Half of the runs that succeeded took no longer",
  p95: "95 of 100 took no longer",
  late: "Enqueued 1 s late or later, or 1 min without a worker",
};
/** Deploys that are named; the line has all. */
const NAMED = 5;
/** Read interval in ms: an answer reads up to 200,000 runs. */
const REFRESH_MS = 60_000;

/** A time against the time before. @param chips of the page of runs */
export function Trends({ chips }: { chips: ReactNode }) {
  const [params, setParams] = useSearchParams();
  const zone = useZone();
  const text = (name: string) => params.get(name) || undefined;
  const set = (change: Parameters<typeof changed>[0]) => setParams(changed(change));
  const by = BYS.find((one) => one === params.get("by")) ?? "task";
  const sort = NAMES.find((one) => one === params.get("sort")) ?? "runs";
  const [change, reverse] = [params.has("change"), params.has("reverse")];
  const asked: Asked = {
    ...{ by, sort, from: timeIn(params, "from"), to: timeIn(params, "to") },
    ...{ owner: text("owner"), queue: text("queue"), tag: text("tag") },
    ...(change && { change }),
    ...(reverse && { reverse }),
  };
  const trends = useCall("runs.trends", asked, { refresh: REFRESH_MS, maxAge: 30 });
  return (
    <>
      <PageHead title="Runs" />
      <Panel
        title={trends.data ? countText(trends.data.runs, "run") : "Trends"}
        end={<Filters names={FIELDS} />}
      >
        <div className="body inline">
          {chips}
          <div className="chips">
            <span aria-hidden="true" className="chip-gap" />
            <Chips
              names={BYS}
              text={(name) => `By ${name}`}
              chosen={by}
              onPick={(name) => set({ by: name === "task" ? undefined : name })}
            />
          </div>
          <Ranges onPick={(range) => set({ to: undefined, ...asTexts(range, zone) })} />
          <Check
            label="Sort by the difference"
            checked={change}
            onSet={(on) => set({ change: on ? "1" : undefined })}
          />
          {params.size === 1 ? null : <Link href="/runs?filter=trends">Clear the filters</Link>}
        </div>
        <Loaded of={trends}>
          {(answer) => (
            <>
              <Deploys of={answer} />
              <Notes of={answer} />
              {answer.rows.length === 0 ? (
                <Empty>No run ended in these times.</Empty>
              ) : (
                <Table
                  of={answer}
                  sort={sort}
                  reverse={reverse}
                  onSort={(column) =>
                    set({ sort: column, reverse: column === sort && !reverse ? "1" : undefined })
                  }
                />
              )}
              {answer.more > 0 ? (
                <p className="body soft">{`And ${countText(answer.more, "row")} more: filter, or sort by another column.`}</p>
              ) : null}
            </>
          )}
        </Loaded>
        <div className="body">
          <CopyAs name="runs.trends" input={asked} />
        </div>
      </Panel>
    </>
  );
}

/** The two times on a line, and the sets of tasks that were applied in them. */
function Deploys({ of: { start, from, to, deploys } }: { of: Trends }) {
  const [params] = useSearchParams();
  const x = (at: number) => (1_000 * (at - start)) / Math.max(1, to - start);
  return (
    <div className="body stack">
      {deploys.length === 0 ? null : (
        <svg className="deploys" viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">
          <rect x={x(from)} width={1_000 - x(from)} height="16" />
          {deploys.map(({ id, at }) => (
            <line key={id} x1={x(at)} x2={x(at)} y1="0" y2="16" />
          ))}
        </svg>
      )}
      <p className="small inline">
        <span>
          <Time at={from} /> – <Time at={to} after={from} />
        </span>
        <span className="soft">
          against <Time at={start} /> – <Time at={from} after={start} />
        </span>
        {deploys.slice(0, NAMED).map(({ id, at, set, version, by }) => (
          <span key={id}>
            {"Applied "}
            <Time at={at} />:{" "}
            <Link href={`/settings/changes?to=${at + 1}`} className="any">
              {[set, version, by && `by ${by}`].filter(Boolean).join(" ")}
            </Link>
            {", "}
            <Link href={`/runs?${changed({ from: String(at), to: undefined })(params)}`}>since then</Link>
          </span>
        ))}
        {deploys.length > NAMED ? (
          <Link href={`/settings/changes?to=${to}`}>{`and ${deploys.length - NAMED} more`}</Link>
        ) : null}
      </p>
    </div>
  );
}

/** Reasons why some rows are not compared. */
function Notes({ of: { start, from, to, rows } }: { of: Trends }) {
  const isCut = start > Math.max(0, 2 * from - to);
  if (isCut)
    return (
      <p className="note" data-tone="warn">
        <span>
          Too many runs ended in these times: only those since <Time at={start} /> were read, and nothing is
          compared. Choose a shorter time.
        </span>
      </p>
    );
  if (rows.every(({ tasks, compared }) => compared === tasks)) return null;
  return (
    <p className="note">
      <span>
        Not all records reach back to <Time at={start} />: <code>retention</code> keeps 100 successes of a
        task for 7 days, unless it says more. Differences are of the tasks whose records do.
      </span>
    </p>
  );
}

function Table({
  of: { rows, from, to },
  sort,
  reverse,
  onSort,
}: {
  of: Trends;
  sort: Column;
  reverse: boolean;
  onSort: (column: Column) => void;
}) {
  const rises = (column: Column) => (column === "share" || column === "name") !== reverse;
  return (
    <Scroll label="Trends">
      <table className="plain trends">
        <thead>
          <tr>
            {NAMES.map((column) => (
              <th
                key={column}
                scope="col"
                aria-sort={column !== sort ? undefined : rises(column) ? "ascending" : "descending"}
              >
                <button type="button" title={HINTS[column]} onClick={() => onSort(column)}>
                  {COLUMNS[column]}
                  <span aria-hidden="true">{column !== sort ? "" : rises(column) ? " ↑" : " ↓"}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.task ? taskPath(row.task) : (row.owner ?? row.queue ?? row.tag)}>
              <td>
                <Subject row={row} />
              </td>
              {NAMES.slice(1).map((column) => (
                <td key={column}>
                  <Figure row={row} name={column as TrendFigure} times={{ from, to }} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Subject({ row: { task, owner, queue, tag, tasks, compared, since } }: { row: Row }) {
  const [params] = useSearchParams();
  const within = changed({
    by: undefined,
    ...(owner && { owner }),
    ...(queue && { queue }),
    ...(tag && { tag }),
  })(params);
  const name = task ? shortName(task) : (owner ?? queue ?? (tag || "no tag"));
  return (
    <>
      {tag === "" ? (
        <strong>{name}</strong>
      ) : (
        <Link className="any strong" href={task ? taskPath(task) : `/runs?${within}`} data-row>
          {name}
        </Link>
      )}
      <span className="block small soft">
        {compared > 0 && compared < tasks ? `${compared.toLocaleString("en")} of ` : ""}
        {task ? task.queue : countText(tasks, "task")}
        {since === undefined ? null : (
          <>
            , records since <Time at={since} />
          </>
        )}
      </span>
    </>
  );
}

/** A figure and its difference. The number of runs leads to them. */
function Figure({
  row,
  name,
  times,
}: {
  row: Row;
  name: TrendFigure;
  times: { readonly from: number; readonly to: number };
}) {
  const shown = trendText(row, name);
  if (shown === undefined) return "–";
  const { text, change, more = false, worse } = shown;
  const { task, owner, queue, tag } = row;
  const of = { task: task?.id, owner: task?.owner ?? owner, queue: task?.queue ?? queue };
  const runs = changed({ ...of, from: String(times.from), to: String(times.to) })(new URLSearchParams());
  return (
    <>
      {name === "runs" && tag === undefined ? <Link href={`/runs?${runs}`}>{text}</Link> : text}
      {change === undefined ? null : (
        <span className="small soft" data-worse={worse || undefined}>
          <span aria-hidden="true">{change}</span>
          <span className="unseen">{`${change.slice(1)} ${more ? "more" : "less"} than before`}</span>
        </span>
      )}
    </>
  );
}
