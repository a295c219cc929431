import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../../lib/me.js";
import { useCall } from "../../lib/query.js";
import { Button } from "../../parts/button.js";
import { NewFreeze } from "../../parts/freeze.js";
import { PageHead } from "../../parts/page.js";
import { quotaText, SetLimit, SetQuota } from "../rules.js";
import { NewLink } from "../tokens.js";

const LINKS = [
  ["Tasks", "/tasks"],
  ["Runs", "/runs"],
  ["Errors", "/errors"],
  ["Load", "/load"],
  ["Changes", "/settings/changes"],
] as const;

/** Head of the start page for one owner: what can be done to it, its other pages, and its quotas. */
export default function OwnerHead({ owner }: { owner: string }) {
  const { wide, act } = useMe();
  const [isFreezing, setFreezing] = useState(false);
  return (
    <>
      <PageHead title={`Owner ${owner}`}>
        {act ? <Button onClick={() => setFreezing(true)}>Freeze</Button> : null}
        <SetQuota scope={`owner:${owner}`} />
        <SetLimit owner={owner} />
        <NewLink owner={owner} />
      </PageHead>
      {isFreezing ? <NewFreeze owner={owner} onClose={() => setFreezing(false)} /> : null}
      <p className="inline tabs">
        {wide ? <Link href="/">All owners</Link> : null}
        {LINKS.map(([name, path]) => (
          <Link key={path} href={`${path}?owner=${encodeURIComponent(owner)}`}>
            {name}
          </Link>
        ))}
        {wide ? <Quotas owner={owner} /> : null}
      </p>
    </>
  );
}

/** The quotas that an owner obeys: its own or that of each owner, and that of the namespace. */
function Quotas({ owner }: { owner: string }) {
  const { all = 0 } = useCall("tasks.counts", { owner }).data ?? {};
  const { quotas = [] } = useCall("quotas.list", {}).data ?? {};
  const own = quotas.some(({ scope }) => scope === `owner:${owner}`) ? `owner:${owner}` : "owner:*";
  return quotas
    .filter(({ scope }) => scope === "all" || scope === own)
    .map((quota) => (
      <span key={quota.scope} className="soft">
        {quota.scope === "all" ? "all together: " : ""}
        {quotaText(quota)}
        {quota.scope === "all" || quota.tasks === undefined ? null : (
          <span>{`${all.toLocaleString("en")} of ${quota.tasks.toLocaleString("en")} used`}</span>
        )}
      </span>
    ));
}
