import { FAILURES } from "@carillon/ops/words";
import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import type { PageProps } from "../lib/page-props.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { FreezeRows, NewFreeze } from "../parts/freeze.js";
import { Empty, Loaded, PageHead, Panel, Rows } from "../parts/page.js";
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
        {wide && define ? <NewLink owner={owner} /> : null}
      </PageHead>
      {isFreezing ? <NewFreeze owner={owner} onClose={() => setFreezing(false)} /> : null}
      <div className="stack">
        <div className="panels">
          <Tasks owner={owner} />
          <Load owner={owner} />
          <Freezes owner={owner} />
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

function Freezes({ owner }: Props) {
  const { data, ...rest } = useCall("freezes.list", {});
  const freezes = data?.freezes.filter(
    (one) =>
      (one.owner ?? owner) === owner &&
      (one.tasks === undefined || one.tasks.some((task) => task.owner === owner)),
  );
  return (
    <Panel title={words.freezes.title} end={<Link href="/freezes">{words.more}</Link>}>
      <Loaded of={{ data: freezes, ...rest }}>{(freezes) => <FreezeRows of={freezes} />}</Loaded>
    </Panel>
  );
}

/** The quotas that an owner obeys: its own or that of each owner, and that of the namespace. */
function Quota({ owner }: Props) {
  const { data, ...rest } = useCall("quotas.list", {});
  const counts = useCall("tasks.counts", { owner });
  const own = data?.quotas.find(({ scope }) => scope === `owner:${owner}`);
  const quotas = data?.quotas.filter(
    (one) => one === own || one.scope === "all" || (own === undefined && one.scope === "owner:*"),
  );
  return (
    <Panel
      title={words.rules.quotas}
      end={
        <>
          <Link href="/rules">{words.more}</Link> <SetQuota scope={`owner:${owner}`} />{" "}
          <SetLimit owner={owner} />
        </>
      }
    >
      <Loaded of={{ data: quotas, ...rest }}>
        {(quotas) => (
          <Rows of={quotas} none={words.rules.noQuotas}>
            {(quota) => (
              <li key={quota.scope}>
                <strong>{quota.scope}</strong>
                <span>{quotaText(quota)}</span>
                {quota.scope === "all" || quota.tasks === undefined || counts.data === undefined ? null : (
                  <span className="soft end">{`${counts.data.all.toLocaleString("en")} of ${quota.tasks.toLocaleString("en")} used`}</span>
                )}
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
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
  const { data, ...rest } = useCall("tokens.list", {});
  const tokens = data?.tokens.filter(({ owners }) => owners?.includes(owner));
  return (
    <Panel title={words.tokens.list} end={<Link href="/tokens">{words.more}</Link>}>
      <Loaded of={{ data: tokens, ...rest }}>
        {(tokens) => (
          <Rows of={tokens} none="No token is bound to this owner.">
            {({ name, role, expires, expired }) => (
              <li key={name}>
                <strong className="any">{name}</strong>
                <Badge>{role}</Badge>
                {expired ? <Badge tone="warn">{words.tokens.expired}</Badge> : null}
                {expires === undefined ? null : (
                  <span className="soft end">
                    {words.tokens.until} <Time at={expires} />
                  </span>
                )}
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}
