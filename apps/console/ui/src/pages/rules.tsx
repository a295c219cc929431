import type { AnswerTo } from "@carillon/ops";
import { countText, duration } from "@carillon/ops/words";
import { Link } from "wouter";
import { ownerPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { AskButton } from "../parts/ask.js";
import { PageHead } from "../parts/page.js";
import { Records } from "../parts/records.js";

/** The rules of the namespace: default policies, quotas, limits by owner, and task types. */
export default function Rules() {
  return (
    <>
      <PageHead title="Rules" />
      <div className="stack">
        <Records
          title="Default policies"
          list="defaults.list"
          of={({ defaults }) => Object.entries(defaults)}
          name={([scope]) => scope}
          columns={[
            ([scope]) => scope,
            ([, policies]) => <code className="any">{JSON.stringify(policies)}</code>,
          ]}
          none="No scope has default policies."
          end={
            <AskButton
              title="Set defaults"
              does="defaults.set"
              looks={{ policies: { first: {}, hint: "Of tasks without their own. {} removes them." } }}
              says="Stored."
            />
          }
        />
        <Records
          title="Quotas"
          list="quotas.list"
          of={({ quotas }) => quotas}
          name={({ scope }) => scope}
          columns={[({ scope }) => <Scope of={scope} />, quotaText]}
          none="There is no quota."
          end={<SetQuota />}
        />
        <Records
          title="Limits by owner"
          list="names.list"
          input={{ of: "queue" }}
          of={({ names }) => names}
          name={(queue) => queue}
          columns={[(queue) => queue, (queue) => <Limits queue={queue} />]}
          none="There is no queue yet: put a task."
          end={<SetLimit />}
        />
        <Records
          title="Task types"
          list="types.list"
          of={({ types }) => types}
          name={(type) => type}
          columns={[(type) => type]}
          none="Any type may be put."
          end={
            <AskButton
              title="Allow types"
              does="types.allow"
              looks={{
                types: {
                  hint: "Puts of other types are refused; stored tasks stay. With spaces between; empty: any type.",
                },
              }}
              says="Stored."
            />
          }
        />
      </div>
    </>
  );
}

/** A button that asks for a quota. @param scope the scope that is proposed */
export function SetQuota({ scope }: { scope?: string }) {
  return (
    <AskButton title="Set a quota" does="quotas.set" looks={{ scope: { first: scope } }} says="Stored.">
      <p>Without a bound, the quota is removed.</p>
    </AskButton>
  );
}

/** A button that asks for a limit. @param owner the owner that is proposed */
export function SetLimit({ owner }: { owner?: string }) {
  return (
    <AskButton
      title="Set a limit"
      does="queues.limit"
      looks={{
        owner: { first: owner, hint: "*: each without a limit of its own." },
        runs: { hint: "Queued or running in the queue at once. Empty: no limit." },
      }}
      says="Stored."
    />
  );
}

export function quotaText({ tasks, interval, waiting }: AnswerTo<"quotas.list">["quotas"][number]): string {
  return [
    tasks === undefined ? "" : `at most ${countText(tasks, "task")}`,
    interval === undefined ? "" : `at least ${duration(interval)} between two occurrences`,
    waiting === undefined ? "" : `at most ${countText(waiting, "job waits", "jobs wait")} in a queue`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** A scope of a quota; an owner's leads to its page. */
function Scope({ of }: { of: string }) {
  const owner = /^owner:([^*]+)$/.exec(of)?.[1];
  return (
    <strong className="any">{owner === undefined ? of : <Link href={ownerPath(owner)}>{of}</Link>}</strong>
  );
}

function Limits({ queue }: { queue: string }) {
  const { data, error } = useCall("queues.limits", { queue });
  if (error) return <span className="bad">{error.message}</span>;
  const limits = Object.entries(data?.limits ?? {});
  if (limits.length === 0) return <span className="soft">–</span>;
  return limits.map(([owner, runs]) => (
    <span key={owner} className="any">
      {owner === "*" ? "each owner" : <Link href={ownerPath(owner)}>{owner}</Link>}: {countText(runs, "run")}
    </span>
  ));
}
