import type { AnswerTo, InputTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import type { Outcome, Task } from "@carillon/sdk";
import type { ConditionName } from "@carillon/sdk/conditions";
import { useCallback } from "react";
import { Link, useSearchParams } from "wouter";
import { refOf, shortName, taskPath } from "../lib/api.js";
import { useKeys } from "../lib/keys.js";
import { useMe } from "../lib/me.js";
import { useCall, usePages } from "../lib/query.js";
import { changed } from "../lib/request.js";
import { ALL, type Selection, useSelection } from "../lib/selection.js";
import { useNow } from "../lib/time.js";
import { Chips } from "../parts/button.js";
import { CopyAs } from "../parts/copy-as.js";
import { NameInput } from "../parts/name-input.js";
import { Empty, Loaded, PageHead } from "../parts/page.js";
import { RowLink } from "../parts/row-link.js";
import { OutcomeBadge, TaskBadge, toneOf } from "../parts/state.js";
import { RowStrip } from "../parts/ticks.js";
import { Relative, ScheduleText, Time } from "../parts/time.js";
import { type Column, VirtualTable } from "../parts/vtable.js";
import { labelOf, nameOf } from "../words.js";
import { BulkBar, type Target } from "./tasks-bulk.js";
import { Deleted } from "./tasks-deleted.js";

type Filter = InputTo<"tasks.list">;
interface Pages {
  readonly pages: readonly AnswerTo<"tasks.list">[];
}

const PAGE = 200;
const DAY = 86_400_000;
/** Most tasks that one call may name. */
const MOST = 1_000;
const CHIPS = {
  all: {},
  failing: { failing: true },
  overdue: { overdue: true },
  neverRan: { neverRan: true },
  paused: { state: "paused" },
  scheduled: { state: "scheduled" },
  finished: { state: "finished" },
  // Another list.
  deleted: {},
} as const satisfies Record<string, Filter>;
type Chip = keyof typeof CHIPS;
/** Filters that the address keeps. */
const KEPT = ["search", "owner", "tag", "queue", "set", "sort"] as const satisfies (ConditionName | "sort")[];
/** Filters in the bar; the owner only for those who see all of them. */
const FILTERS = ["queue", "owner", "tag"] as const;
/** Filters of deleted tasks. */
const OF_DELETED: ReadonlySet<string> = new Set(["queue", "owner"]);

const SORTS = { name: "By queue, name", next: "By next time", last: "By last run" };

/** All tasks. Filters are in the address, so that it can be sent to a colleague. */
export default function Tasks() {
  const [params, setParams] = useSearchParams();
  const chip = (Object.hasOwn(CHIPS, params.get("filter") ?? "") ? params.get("filter") : "all") as Chip;
  const kept = Object.fromEntries(KEPT.map((name) => [name, params.get(name) ?? undefined]));
  const filter = { ...kept, ...CHIPS[chip] };
  const isDeleted = chip === "deleted";
  const pages = usePages("tasks.list", isDeleted ? undefined : { ...filter, limit: PAGE });
  const selection = useSelection(filter, rowsOf(pages.data), taskPath);
  const { act, define, wide } = useMe();
  const { queue, owner, tag } = kept;
  const counts = useCall("tasks.counts", kept["set"] === undefined ? { queue, owner, tag } : undefined);
  const counted = (name: Chip) => {
    const { states, ...others } = counts.data ?? {};
    return { ...states, ...others, deleted: undefined }[name];
  };
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  const readMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  useKeys({
    " ": () => document.activeElement?.closest("tr")?.querySelector<HTMLElement>("input")?.click(),
  });
  const set = (name: string, value: string) => setParams(changed({ [name]: value }));
  const isFiltered = [...params.keys()].some((name) => name !== "sort");
  return (
    <>
      <PageHead title="Tasks">
        {define ? (
          <Link className="button" href="/tasks/new">
            New task
          </Link>
        ) : null}
      </PageHead>
      <div className="stack">
        <fieldset className="filters">
          <legend className="unseen">Filters</legend>
          <div className="chips">
            <Chips
              names={Object.keys(CHIPS) as Chip[]}
              text={(name) =>
                [name === "neverRan" ? "Never ran" : labelOf(name), counted(name)?.toLocaleString("en")].join(
                  " ",
                )
              }
              chosen={chip}
              onPick={(name) => set("filter", name === "all" ? "" : name)}
            />
          </div>
          {FILTERS.filter((name) => (wide || name !== "owner") && (!isDeleted || OF_DELETED.has(name))).map(
            (name) => (
              <Filter
                key={name}
                of={name}
                label={labelOf(name)}
                value={kept[name] ?? ""}
                onSet={(to) => set(name, to)}
              />
            ),
          )}
          <select
            className="input"
            aria-label="Order"
            hidden={isDeleted}
            value={kept["sort"] ?? "name"}
            onChange={(event) => set("sort", event.target.value === "name" ? "" : event.target.value)}
          >
            {Object.entries(SORTS).map(([name, text]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
        </fieldset>
        {isDeleted ? (
          <Deleted of={{ queue, owner, search: kept["search"] }} />
        ) : (
          <Loaded of={pages}>
            {(data) => {
              const rows = rowsOf(data);
              const unreadable = data.pages.flatMap(({ unreadable = [] }) => unreadable);
              const left =
                unreadable.length === 0 ? null : (
                  <p className="note" data-tone="bad">
                    {unreadable.length === 1
                      ? "One task cannot be read, see the doctor:"
                      : `${unreadable.length} tasks cannot be read, see the doctor:`}{" "}
                    {unreadable.map(shortName).join(", ")}
                  </p>
                );
              if (rows.length === 0 && !hasNextPage) {
                return (
                  <Empty>
                    {left}
                    {isFiltered
                      ? "No task matches."
                      : "There are no tasks yet. Put the first one here, or with"}{" "}
                    {isFiltered ? (
                      <Link href="/tasks">Clear the filters</Link>
                    ) : (
                      <code>carillon put FILE</code>
                    )}
                  </Empty>
                );
              }
              return (
                <>
                  {left}
                  {selection.rows.length > 0 ? (
                    <BulkBar
                      target={targetOf(selection, filter)}
                      first={selection.rows[0]}
                      text={
                        selection.isAll
                          ? "All that match are selected"
                          : `${countText(selection.rows.length, "task")} selected`
                      }
                      // Without a filter, the server refuses to act on all.
                      onAll={isFiltered && !selection.isAll ? () => selection.choose(ALL) : undefined}
                      plan={{ queue, owner, tag }}
                      onClear={() => selection.choose([])}
                    />
                  ) : null}
                  <VirtualTable
                    label="Tasks"
                    rows={rows}
                    columns={act ? [selector(selection, rows), ...COLUMNS] : COLUMNS}
                    rowKey={taskPath}
                    stateOf={({ display, lastStatus }) => `${display?.code} ${lastStatus?.outcome}`}
                    onEnd={readMore}
                  />
                  <p className="soft small" aria-live="polite">
                    {hasNextPage
                      ? `${rows.length.toLocaleString("en")} read so far`
                      : countText(rows.length, "task")}
                  </p>
                  <CopyAs name="tasks.list" input={filter} />
                </>
              );
            }}
          </Loaded>
        )}
      </div>
    </>
  );
}

function rowsOf(data: Pages | undefined): readonly Task[] {
  return data?.pages.flatMap(({ tasks }) => tasks) ?? [];
}

function targetOf({ isAll, rows }: Selection<Task>, { sort: _, ...filter }: Filter): Target {
  if (isAll) return Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
  return { tasks: rows.map(refOf) };
}

/** The column of checkboxes. The one in its header selects the tasks read so far. */
function selector(selection: Selection<Task>, rows: readonly Task[]): Column<Task> {
  const read = rows.slice(0, MOST);
  const isAll = read.every(selection.has);
  return {
    key: "select",
    width: "1.2rem",
    head: (
      <input
        type="checkbox"
        aria-label="Select the tasks shown"
        title="Select the tasks shown"
        checked={isAll}
        ref={(box) => {
          if (box) box.indeterminate = !isAll && selection.rows.length > 0;
        }}
        onChange={() => selection.choose(isAll ? [] : read)}
      />
    ),
    cell: (task) => (
      <input
        type="checkbox"
        aria-label={`Select ${shortName(task)}`}
        checked={selection.has(task)}
        onChange={() => selection.toggle(task)}
      />
    ),
  };
}

/** A filter by name, applied when the field is left. */
function Filter(props: { of: string; label: string; value: string; onSet: (to: string) => void }) {
  const { of, label, value, onSet } = props;
  return (
    <NameInput
      key={value}
      of={of}
      aria-label={label}
      placeholder={label}
      defaultValue={value}
      onBlur={(event) => {
        if (event.target.value !== value) onSet(event.target.value.trim());
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") event.currentTarget.blur();
      }}
    />
  );
}

/** When a task really runs next; on narrow screens also what is not usual about it. */
function Next({ of: task }: { of: Task }) {
  const { display, timezone } = task;
  const now = useNow();
  const state = (
    <span className="only-narrow cut">
      <TaskBadge {...task} />
    </span>
  );
  if (display?.next === undefined) return state;
  const isUsual = display.code === "due";
  // Within a day, the line above says which one it is.
  const after = display.next - now < DAY ? { after: display.next } : {};
  return (
    <>
      <span className="block" title={display.skips ? "Its times until then are skipped." : undefined}>
        <Relative at={display.next} />
      </span>
      <span className={`block soft small cut ${isUsual ? "" : "only-wide"}`}>
        <Time at={display.next} own={timezone} {...after} />
      </span>
      {isUsual ? null : state}
    </>
  );
}

const COLUMNS: readonly Column<Task>[] = [
  {
    key: "task",
    head: "Task",
    width: "minmax(6.5rem, 3fr)",
    cell: (task) => (
      <>
        <RowLink href={taskPath(task)} className="cut block strong">
          {shortName(task)}
        </RowLink>
        <span className="cut block soft small">
          {toneOf(task.lastStatus?.outcome) === "bad" ? (
            // Wide screens have a column for it.
            <span className="only-narrow bad">{nameOf(task.lastStatus?.outcome as Outcome)} · </span>
          ) : null}
          {task.type} · {task.queue}
        </span>
      </>
    ),
  },
  {
    key: "schedule",
    head: "Schedule",
    width: "minmax(8rem, 3fr)",
    wide: true,
    cell: (task) => (
      <span className="two-lines" title={task.humanized}>
        <ScheduleText of={task.humanized} />
      </span>
    ),
  },
  {
    key: "next",
    head: "Next",
    width: "minmax(9rem, 1.3fr)",
    cell: (task) => <Next of={task} />,
  },
  {
    key: "last",
    head: "Last run",
    width: "minmax(8.5rem, 1fr)",
    wide: true,
    cell: ({ lastStatus, lastChecked }) => {
      const at = lastChecked ?? lastStatus?.finishedAt;
      const outcome = lastStatus?.outcome ?? (lastChecked && "nothing-to-do");
      if (!outcome) return <span className="soft">never ran</span>;
      return (
        <>
          <OutcomeBadge outcome={outcome} />
          {at === undefined ? null : (
            <span className="block soft small">
              {lastChecked && lastStatus ? "last checked" : null} <Relative at={at} />
            </span>
          )}
        </>
      );
    },
  },
  {
    key: "ticks",
    head: "Last 30",
    width: "minmax(2rem, 13.2rem)",
    wide: true,
    cell: (_, index, rows) => <RowStrip rows={rows} index={index} />,
  },
  {
    key: "state",
    head: "State",
    width: "minmax(9rem, 11.5rem)",
    wide: true,
    // The column of the next time says when it is due.
    cell: ({ display, ...task }) => (
      <span className="small">
        <TaskBadge {...task} display={display?.code === "due" ? { code: "due" } : display} />
      </span>
    ),
  },
];
