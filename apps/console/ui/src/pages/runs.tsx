import type { InputTo } from "@carillon/ops";
import { countText, duration, FAILURES } from "@carillon/ops/words";
import type { Outcome } from "@carillon/sdk";
import { type ReactNode, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { runPath, shortName } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall, usePages } from "../lib/query.js";
import { changed, timeIn } from "../lib/request.js";
import { useSelection } from "../lib/selection.js";
import { fieldTime, typedTime, useZone } from "../lib/time.js";
import { doneToMany } from "../lib/undo.js";
import { Button, Chips } from "../parts/button.js";
import { Check, Confirm } from "../parts/confirm.js";
import { CopyAs } from "../parts/copy-as.js";
import { Filters } from "../parts/filters.js";
import { Empty, Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { asTexts, Ranges } from "../parts/ranges.js";
import { ReplayDialog } from "../parts/replay.js";
import { RowLink } from "../parts/row-link.js";
import { RunRows } from "../parts/run-rows.js";
import { labelOf } from "../words.js";
import { Backfills } from "./backfills.js";
import { Trends } from "./trends.js";

const CHIPS = {
  all: undefined,
  failed: [...FAILURES],
  succeeded: ["succeeded", "partial", "nothing-to-do"],
  others: ["cancelled", "dropped"],
  backfills: undefined,
  trends: undefined,
} as const satisfies Record<string, readonly Outcome[] | undefined>;
type Chip = keyof typeof CHIPS;
const FIELDS = ["task", "owner", "queue", "text", "took"] as const;

/** Runs, backfills, or trends. */
export default function RunsPage() {
  const [params, setParams] = useSearchParams();
  const chip = (Object.hasOwn(CHIPS, params.get("filter") ?? "") ? params.get("filter") : "all") as Chip;
  const chips = (
    <div className="chips">
      <Chips
        names={Object.keys(CHIPS) as Chip[]}
        text={(name) => (name === "others" ? "Cancelled, dropped" : labelOf(name))}
        chosen={chip}
        onPick={(name) =>
          setParams(changed({ filter: name === "all" ? undefined : name, batch: undefined, id: undefined }))
        }
      />
    </div>
  );
  if (chip === "trends") return <Trends chips={chips} />;
  return chip === "backfills" ? <Backfills chips={chips} /> : <Runs chip={chip} chips={chips} />;
}

/** Runs under way, and ended runs: those of a range of time, newest or slowest first. */
function Runs({ chip, chips }: { chip: Chip; chips: ReactNode }) {
  const [params, setParams] = useSearchParams();
  const zone = useZone();
  const text = Object.fromEntries([...FIELDS, "node"].map((name) => [name, params.get(name) || undefined]));
  const [from, to] = [timeIn(params, "from"), timeIn(params, "to")];
  const isSlowest = params.get("sort") === "took";
  const { act } = useMe();
  const [replays, setReplays] = useState<"some" | "all" | undefined>();
  const filter = {
    ...text,
    ...{ from, to, outcome: CHIPS[chip], limit: 50 },
    ...(isSlowest && { sort: "took" as const }),
  };
  const pages = usePages("runs.journal", filter);
  const rowsOf = (data = pages.data) => data?.pages.flatMap(({ runs }) => runs) ?? [];
  const runs = rowsOf();
  const selection = useSelection(filter, runs, ({ id }) => id);
  const chosen = selection.rows.length;
  const set = (change: Parameters<typeof changed>[0]) => setParams(changed(change));
  const range = (name: "from" | "to", value: number | undefined) => (
    <label className="inline small soft">
      {`Ended ${name === "from" ? "from" : "until"} (${zone})`}
      <input
        className="input"
        type="datetime-local"
        value={value === undefined ? "" : fieldTime(value, zone)}
        onChange={({ target }) =>
          set({ [name]: target.value === "" ? undefined : String(typedTime(target.value, zone)) })
        }
      />
    </label>
  );
  return (
    <>
      <PageHead title="Runs" />
      <div className="stack">
        <UnderWay of={ofRunning(text)} />
        <Panel title="Ended">
          <div className="body inline">
            {chips}
            <Ranges onPick={(range) => set({ to: undefined, ...asTexts(range, zone) })} />
            <Check
              label="Slowest first"
              checked={isSlowest}
              onSet={(on) => set({ sort: on ? "took" : undefined })}
            />
            <div className="inline">
              {range("from", from)}
              {range("to", to)}
            </div>
            <Filters names={FIELDS} />
            {params.size === 0 ? null : <Link href="/runs">Clear the filters</Link>}
            {act && (from ?? to) !== undefined ? (
              <Button onClick={() => setReplays("all")}>Run all failed of this range again</Button>
            ) : null}
            {chosen > 0 ? (
              <>
                <Button look="main" onClick={() => setReplays("some")}>
                  {`Run ${countText(chosen, "run")} again`}
                </Button>
                <Button look="plain" onClick={() => selection.choose([])}>
                  Clear the selection
                </Button>
              </>
            ) : null}
          </div>
          {replays === undefined ? null : (
            <ReplayDialog
              title={
                replays === "all"
                  ? "Run all failed of this range again"
                  : `Run ${countText(chosen, "run")} again`
              }
              of={
                replays === "all"
                  ? { ...text, from: from ?? 0, to }
                  : { runs: selection.rows.map(({ id }) => id) }
              }
              onClose={() => setReplays(undefined)}
            />
          )}
          <Loaded of={pages}>
            {(data) => (
              <>
                {rowsOf(data).length === 0 ? (
                  <Empty>No run matches.</Empty>
                ) : (
                  <RunRows runs={rowsOf(data)} withTask selection={act ? selection : undefined} />
                )}
                <More of={pages}>Older runs</More>
              </>
            )}
          </Loaded>
          <div className="body">
            <CopyAs name="runs.journal" input={filter} />
          </div>
        </Panel>
      </div>
    </>
  );
}

type Running = Pick<InputTo<"runs.running">, (typeof OF_RUNNING)[number]>;
const OF_RUNNING = ["task", "owner", "queue", "text"] as const;
/** Most runs under way that are shown. */
const MOST_RUNNING = 200;

/** The fields of the filter that runs under way have. */
function ofRunning(text: Readonly<Record<string, string | undefined>>): Running {
  return Object.fromEntries(OF_RUNNING.map((name) => [name, text[name]]));
}

const cancelText = (n: number) =>
  n === 1 ? "Cancel this run" : `Cancel these ${n.toLocaleString("en")} runs`;

/** Runs under way that match, and the button that cancels exactly those. */
function UnderWay({ of: filter }: { of: Running }) {
  const { act } = useMe();
  const runs = useCall("runs.running", { ...filter, limit: MOST_RUNNING });
  const [ending, setEnding] = useState<readonly string[]>();
  const shown = runs.data?.runs ?? [];
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <Panel
      title={isFiltered ? "Running, of this filter" : "Running"}
      end={
        act && shown.length > 0 ? (
          <Button look="danger" onClick={() => setEnding(shown.map(({ id }) => id))}>
            {cancelText(shown.length)}
          </Button>
        ) : null
      }
    >
      {ending === undefined ? null : (
        <Confirm
          title={cancelText(ending.length)}
          act="Cancel them"
          danger
          does="runs.cancelMany"
          input={{ runs: ending }}
          shows="first"
          onDone={(done) => doneToMany("cancel", done)}
          onClose={() => setEnding(undefined)}
        >
          <p>{`${ending.length === MOST_RUNNING ? `These are the ${MOST_RUNNING} that run longest: there may be more. ` : ""}Each run is asked to end. One that has ended meanwhile is left out. This cannot be undone.`}</p>
        </Confirm>
      )}
      <Loaded of={runs}>
        {({ runs }) => (
          <Rows of={runs} none={isFiltered ? "No run under way matches." : "Nothing runs at this moment."}>
            {({ id, task, host, worker, runningMs, usualMs }) => (
              <li key={id}>
                <RowLink href={runPath(id)}>{shortName(task)}</RowLink>
                <span className="soft small">{host ?? worker}</span>
                <span className="end soft">
                  {duration(runningMs)}
                  {usualMs === undefined ? "" : ` (usually ${duration(usualMs)})`}
                </span>
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}
