import type { ItemState, RunDetails, RunItem } from "@carillon/sdk";
import { useLocation } from "wouter";
import { api, runPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useGetPages } from "../lib/query.js";
import { duration } from "../lib/time.js";
import { More, Panel } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { words } from "../words.js";

const w = words.run;
const TONES: Record<ItemState, Tone> = {
  ...{ waiting: "none", active: "run", completed: "ok", failed: "bad", cancelled: "none" },
};

/** The items of a fan-out, with a retry of the failed ones. Empty for other runs. */
export function Items({ run }: { run: RunDetails }) {
  const { act } = useMe();
  const [, navigate] = useLocation();
  const pages = useGetPages<{ items: RunItem[]; cursor?: string }>(`${runPath(run.id)}/items`, {});
  const retry = useAct(() => api<{ run: string }>("POST", `${runPath(run.id)}/retry-items`), {
    onDone: ({ run }) => navigate(runPath(run)),
  });
  const items = pages.data?.pages.flatMap(({ items }) => items) ?? [];
  if (items.length === 0) return null;
  const canRetry = act && run.state === "final" && items.some(({ status }) => status === "failed");
  return (
    <Panel
      title={w.items}
      end={
        canRetry ? (
          <button type="button" className="button" onClick={() => retry.mutate(undefined)}>
            {w.retryItems}
          </button>
        ) : undefined
      }
    >
      <ul className="rows">
        {items.map(({ index, status, attempts, started, finished, error }) => (
          <li key={index}>
            <span className="soft">#{index}</span>
            <Badge tone={TONES[status]}>{w.itemStates[status]}</Badge>
            {attempts > 1 ? <span className="soft small">{words.runs_.attempts(attempts)}</span> : null}
            {started === undefined || finished === undefined ? null : (
              <span className="end soft">{duration(finished - started)}</span>
            )}
            {error === undefined ? null : <span className="wide small soft any">{error}</span>}
          </li>
        ))}
      </ul>
      <More of={pages}>{w.moreItems}</More>
    </Panel>
  );
}
