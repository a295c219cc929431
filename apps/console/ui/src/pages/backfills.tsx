import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { call, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge, type Tone } from "../parts/state.js";
import { Relative, Time } from "../parts/time.js";

type Backfill = AnswerTo<"backfills.list">["backfills"][number];
const TONES: Record<Backfill["state"], Tone> = { running: "run", done: "ok", cancelled: "none" };

/** Backfills that run, and those of the last days, with their progress. @param chips of the page of runs */
export function Backfills({ chips }: { chips: ReactNode }) {
  const [params] = useSearchParams();
  const { act } = useMe();
  const batch = params.get("batch") ?? undefined;
  const backfills = useCall("backfills.list", { batch }, { refresh: 2_000 });
  const isRunning = backfills.data?.backfills.some(({ state }) => state === "running");
  const stop = useAct((id: string) => call("backfills.cancel", { id }));
  return (
    <>
      <PageHead title="Runs" />
      <Panel title="Backfills of the last 7 days">
        <div className="body inline">
          {chips}
          {act && batch !== undefined && isRunning ? (
            <Button onClick={() => stop.mutate(batch)}>Stop all of these</Button>
          ) : null}
          {batch === undefined ? null : <Link href="/runs?filter=backfills">All backfills</Link>}
        </div>
        <Loaded of={backfills}>
          {({ backfills }) => (
            <Rows of={backfills} none="There is none. Start one on the page of a task.">
              {(backfill) => (
                <Row key={backfill.id} backfill={backfill} chosen={backfill.id === params.get("id")} />
              )}
            </Rows>
          )}
        </Loaded>
      </Panel>
    </>
  );
}

function Row({ backfill, chosen }: { backfill: Backfill; chosen: boolean }) {
  const { act } = useMe();
  const { id, task, state, from, to, total, enqueued, skipped, every, overlap, by, created, replay } =
    backfill;
  const cancel = useAct(() => call("backfills.cancel", { id }));
  const done = enqueued + skipped;
  const progress = `${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  return (
    <li aria-current={chosen || undefined}>
      <Link href={taskPath(task)} data-row>
        {shortName(task)}
      </Link>
      <Badge tone={TONES[state]}>{state === "cancelled" ? "stopped" : state}</Badge>
      {replay ? <Badge>runs again</Badge> : null}
      <span className="soft">
        <Time at={from} /> to <Time at={to} after={from} />
      </span>
      <span className="end soft">
        {by} · <Relative at={created} />
      </span>
      {act && state === "running" ? <Button onClick={() => cancel.mutate(undefined)}>Stop</Button> : null}
      <span className="wide inline">
        <progress max={Math.max(1, total)} value={done} aria-label={progress} />
        {progress}
        <span className="soft">
          {`${enqueued} enqueued, ${skipped} skipped`}
          {every > 0 ? `, one every ${duration(every)}` : ""}
          {overlap === undefined ? "" : `, ${overlap}`}
        </span>
      </span>
    </li>
  );
}
