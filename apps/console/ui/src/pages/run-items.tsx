import type { RunDetails } from "@carillon/sdk";
import type { ItemState, RunItem } from "@carillon/sdk/internal";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call, firstLine, refOf, runPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useLater, usePages } from "../lib/query.js";
import { tookText } from "../lib/time.js";
import { Button } from "../parts/button.js";
import { ErrorText, More, Panel, Rows } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { Time } from "../parts/time.js";
import { labelOf } from "../words.js";

/** Items read at once: as many squares fit in some lines. */
const AT_ONCE = 500;
const rowId = (index: number) => `item-${index}`;
const TONES: Record<ItemState, Tone> = {
  waiting: "none",
  active: "run",
  completed: "ok",
  failed: "bad",
  cancelled: "none",
};
const OTHERS = (Object.keys(TONES) as ItemState[]).filter((state) => state !== "failed");

function useItems(run: RunDetails, status: ItemState | ItemState[]) {
  const pages = usePages("runs.items", { id: run.id, status, limit: AT_ONCE });
  return { pages, items: pages.data?.pages.flatMap(({ items }) => items) ?? [] };
}

/**
 * The items of a fan-out, failed ones first, as squares and as rows, with a retry of the failed; or those of all runs of its task whose data
 * have a text. Empty for other runs.
 */
export function Items({ run }: { run: RunDetails }) {
  const { act } = useMe();
  const [, navigate] = useLocation();
  const failed = useItems(run, "failed");
  const others = useItems(run, OTHERS);
  const retry = useAct(() => call("runs.retryItems", { id: run.id }), {
    onDone: ({ run }) => navigate(runPath(run)),
  });
  const [text, setText] = useState("");
  const isLast = !failed.pages.hasNextPage;
  const items = [...failed.items, ...(isLast ? others.items : [])];
  if (items.length === 0) return null;
  const counts = Object(run.result) as { total?: number; failed?: number; left?: number };
  return (
    <Panel
      title="Items"
      end={
        <>
          {counts.total === undefined ? null : (
            <span className="soft small">{`${(counts.failed ?? 0).toLocaleString("en")} of ${counts.total.toLocaleString("en")} failed`}</span>
          )}{" "}
          {act && run.state === "final" && (failed.items.length > 0 || counts.left) ? (
            <Button disabled={retry.isPending} onClick={() => retry.mutate(undefined)}>
              Do the failed ones again
            </Button>
          ) : null}
        </>
      }
    >
      <div className="body">
        <input
          className="input"
          type="search"
          aria-label="Find items of all runs"
          placeholder="Find in all runs"
          value={text}
          maxLength={200}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {text === "" ? (
        <>
          <div className="squares" aria-hidden="true">
            {items.map(({ index, status, data }) => (
              <button
                key={index}
                type="button"
                tabIndex={-1}
                data-tone={TONES[status]}
                title={`#${index} ${status} ${JSON.stringify(data)}`}
                onClick={() => show(index)}
              />
            ))}
          </div>
          <ul className="rows">
            {items.map((item) => (
              <li key={item.index}>
                <Item item={item} id={rowId(item.index)} />
              </li>
            ))}
          </ul>
          <More of={isLast ? others.pages : failed.pages}>More items</More>
        </>
      ) : (
        <Found run={run} text={text} />
      )}
    </Panel>
  );
}

function show(index: number): void {
  const row = document.getElementById(rowId(index));
  if (row instanceof HTMLDetailsElement) row.open = true;
  row?.scrollIntoView({ block: "center" });
}

/** Items of all runs of the task. */
function Found({ run, text }: { run: RunDetails; text: string }) {
  const pages = usePages("runs.findItems", { ...refOf(run.task), text: useLater(text) });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <Rows of={items} none={pages.data === undefined ? undefined : noneIn(pages.hasNextPage)}>
        {(item) => (
          <li key={`${item.run} ${item.index}`}>
            <Link href={runPath(item.run)} data-row>
              <Time at={item.nominal} />
            </Link>
            <Item item={item} />
          </li>
        )}
      </Rows>
      <More of={pages}>Older items</More>
    </>
  );
}

const noneIn = (more: boolean) =>
  more ? "None in the newest runs." : "No item of a run that is kept has this in its data.";

/** One line; opened, it shows all that the record holds. */
function Item({ item, id }: { item: RunItem; id?: string }) {
  const { index, status, data, attempts, maxAttempts, error, output, worker, pid } = item;
  const took = tookText(item);
  return (
    <details className="wide item" id={id}>
      <summary>
        <span className="soft">#{index}</span> <Badge tone={TONES[status]}>{status}</Badge>{" "}
        <code className="small data">{JSON.stringify(data)}</code>
        {error === undefined ? null : <span className="small any">{firstLine(error)}</span>}
        {took === undefined ? null : <span className="end soft nowrap">{took}</span>}
      </summary>
      <div className="stack">
        <p className="small soft">
          Attempts {attempts} / {maxAttempts}
          {worker === undefined ? "" : ` · Worker ${worker} (${pid})`}
        </p>
        {error === undefined ? null : <ErrorText text={error} />}
        {(["data", "result"] as const).map((name) =>
          item[name] === undefined ? null : (
            <div key={name}>
              <h3>{labelOf(name)}</h3>
              <pre>{JSON.stringify(item[name], null, 2)}</pre>
            </div>
          ),
        )}
        {output === undefined ? null : (
          <div>
            <h3>Output</h3>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long output is scrolled with the keyboard */}
            <pre className="output" tabIndex={0}>
              {output}
            </pre>
          </div>
        )}
      </div>
    </details>
  );
}
