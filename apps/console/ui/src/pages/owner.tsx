import { FAILURES } from "@carillon/ops/words";
import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Freezes, NewFreeze } from "../parts/freeze.js";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { RunRows } from "../parts/run-rows.js";
import { Badge } from "../parts/state.js";
import { Time } from "../parts/time.js";
import { words } from "../words.js";
import { quotaText, SetLimit, SetQuota } from "./rules.js";
import { NewLink } from "./tokens.js";

/** Failures that are listed. */
const LISTED = 8;

/** All about one owner: its tasks and their load, its failures, freezes, quota and tokens. */
export default function Owner({ params }: PageProps) {
  const owner = params["owner"]!;
  const { wide, act, define } = useMe();
  const [isFreezing, setFreezing] = useState(false);
  return (
    <>
      <PageHead title={`Owner ${owner}`}>
        {act ? <Button onClick={() => setFreezing(true)}>{words.freezes.freeze}</Button> : null}
        <NewLink owner={owner} />
      </PageHead>
      {isFreezing ? <NewFreeze owner={owner} onClose={() => setFreezing(false)} /> : null}
      <div className="stack">
        <div className="panels">
          <Tasks owner={owner} />
          <Load owner={owner} />
          <Freezes owner={owner} end={<Link href="/freezes">{words.more}</Link>} />
          {wide ? <Quota owner={owner} /> : null}
        </div>
        <Failures owner={owner} />
        {wide && define ? <Tokens owner={owner} /> : null}
      </div>
    </>
  );
}

interface Props {
  owner: string;
}

function Tasks({ owner }: Props) {
  const counts = useCall("tasks.counts", { owner });
  const href = (more: string) => `/tasks?owner=${encodeURIComponent(owner)}${more}`;
  return (
    <Panel title={words.list.title} end={<Link href={href("")}>{words.more}</Link>}>
      <Loaded of={counts}>
        {({ all, failing, overdue, neverRan, states }) => (
          <dl className="figures body">
            {(
              [
                [words.all, all, ""],
                ["Failing", failing, "&filter=failing"],
                ["Overdue", overdue, "&filter=overdue"],
                ["Never ran", neverRan, "&filter=neverRan"],
                ["Paused", states.paused, "&filter=paused"],
              ] as const
            ).map(([name, n, more]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{n === 0 ? 0 : <Link href={href(more)}>{n.toLocaleString("en")}</Link>}</dd>
              </div>
            ))}
          </dl>
        )}
      </Loaded>
    </Panel>
  );
}

function Load({ owner }: Props) {
  const load = useCall("occurrences.load", { owner, step: "1m" }, { refresh: 60_000, maxAge: 20 });
  return (
    <Panel
      title="Next 24 hours"
      end={<Link href={`/load?owner=${encodeURIComponent(owner)}`}>{words.load.title}</Link>}
    >
      <Loaded of={load}>
        {({ total, busiest: [most], frozen }) => (
          <p className="body">
            {words.load.starts(total)}
            {most === undefined ? null : (
              <>
                ; {`most in one minute: ${most.count.toLocaleString("en")}, at`} <Time at={most.at} />
              </>
            )}
            {frozen === 0 ? "" : `; ${frozen.toLocaleString("en")} are frozen`}
          </p>
        )}
      </Loaded>
    </Panel>
  );
}

/** The quotas that an owner obeys: its own or that of each owner, and that of the namespace. */
function Quota({ owner }: Props) {
  const counts = useCall("tasks.counts", { owner });
  return (
    <Records
      title={words.rules.quotas}
      end={
        <>
          <Link href="/rules">{words.more}</Link> <SetQuota scope={`owner:${owner}`} />{" "}
          <SetLimit owner={owner} />
        </>
      }
      list="quotas.list"
      of={({ quotas }) => {
        const own = quotas.some(({ scope }) => scope === `owner:${owner}`) ? `owner:${owner}` : "owner:*";
        return quotas.filter(({ scope }) => scope === "all" || scope === own);
      }}
      name={({ scope }) => scope}
      columns={[
        ({ scope }) => scope,
        quotaText,
        ({ scope, tasks }) =>
          scope !== "all" &&
          tasks !== undefined &&
          counts.data && (
            <span className="soft end">{`${counts.data.all.toLocaleString("en")} of ${tasks.toLocaleString("en")} used`}</span>
          ),
      ]}
      none={words.rules.noQuotas}
    />
  );
}

function Failures({ owner }: Props) {
  const runs = useCall("runs.journal", { owner, outcome: [...FAILURES], limit: LISTED });
  return (
    <Panel
      title="Newest failures"
      end={<Link href={`/runs?filter=failed&owner=${encodeURIComponent(owner)}`}>{words.more}</Link>}
    >
      <Loaded of={runs}>
        {({ runs }) =>
          runs.length === 0 ? <Empty>No kept run has failed.</Empty> : <RunRows runs={runs} withTask />
        }
      </Loaded>
    </Panel>
  );
}

/** The tokens that are bound to an owner. */
function Tokens({ owner }: Props) {
  return (
    <Records
      title={words.tokens.list}
      end={<Link href="/tokens">{words.more}</Link>}
      list="tokens.list"
      of={({ tokens }) => tokens.filter(({ owners }) => owners?.includes(owner))}
      name={({ name }) => name}
      columns={[
        ({ name }) => name,
        ({ role }) => <Badge>{role}</Badge>,
        ({ expired }) => expired && <Badge tone="warn">{words.tokens.expired}</Badge>,
        ({ expires }) =>
          expires !== undefined && (
            <span className="soft end">
              {words.tokens.until} <Time at={expires} />
            </span>
          ),
      ]}
      none="No token is bound to this owner."
    />
  );
}
