import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { ownerPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { wordsIn } from "../lib/values.js";
import { Button } from "../parts/button.js";
import { Confirm, TextField } from "../parts/confirm.js";
import { JsonField } from "../parts/json-field.js";
import { Empty, Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { words } from "../words.js";
import { counted } from "../words-count.js";

const w = words.rules;
type Typed = Readonly<Record<string, string>>;

/** The rules of the namespace: default policies, quotas, limits by owner, and task types. */
export default function Rules() {
  return (
    <>
      <PageHead title={w.title} />
      <div className="stack">
        <Defaults />
        <Quotas />
        <Limits />
        <Types />
      </div>
    </>
  );
}

function Defaults() {
  const { data, ...rest } = useCall("defaults.list", {});
  const [policies, setPolicies] = useState<unknown>({});
  return (
    <Panel
      title="Default policies"
      end={
        <Change
          title="Set defaults"
          fields={["scope"]}
          does="defaults.set"
          input={({ scope = "" }) =>
            ({ scope, policies: Object.keys(Object(policies)).length === 0 ? null : policies }) as never
          }
        >
          <JsonField
            label="Policies"
            hint="Of tasks without their own. Scopes: all, owner:NAME, type:NAME. {} removes them."
            path="policies"
            value={policies}
            onEdit={setPolicies}
          />
        </Change>
      }
    >
      <Loaded of={{ data: data && Object.entries(data.defaults), ...rest }}>
        {(all) => (
          <Rows of={all} none="No scope has default policies.">
            {([scope, policies]) => (
              <li key={scope}>
                <strong className="any">{scope}</strong>
                <code className="any">{JSON.stringify(policies)}</code>
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}

function Quotas() {
  const quotas = useCall("quotas.list", {});
  return (
    <Panel title={w.quotas} end={<SetQuota />}>
      <Loaded of={quotas}>
        {({ quotas }) => (
          <Rows of={quotas} none={w.noQuotas}>
            {(quota) => (
              <li key={quota.scope}>
                <strong className="any">
                  <Scope of={quota.scope} />
                </strong>
                <span>{quotaText(quota)}</span>
              </li>
            )}
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}

/** A button that asks for a quota. @param preset the scope that is proposed */
export function SetQuota(preset: { scope?: string }) {
  return (
    <Change
      title="Set a quota"
      fields={["scope", "tasks", "interval", "waiting"]}
      preset={preset}
      hint="Scopes: all, owner:NAME, or owner:* for each owner without its own. Without a bound, the quota is removed."
      does="quotas.set"
      input={({ scope = "", tasks, interval, waiting }) =>
        ({
          scope,
          ...(tasks && { tasks: Number(tasks) }),
          ...(interval && { interval }),
          ...(waiting && { waiting: Number(waiting) }),
        }) as never
      }
    />
  );
}

export function quotaText({ tasks, interval, waiting }: AnswerTo<"quotas.list">["quotas"][number]): string {
  return [
    tasks === undefined ? "" : `at most ${counted(tasks, "task", "tasks")}`,
    interval === undefined ? "" : `at least ${duration(interval)} between two occurrences`,
    waiting === undefined ? "" : `at most ${counted(waiting, "job waits", "jobs wait")} in a queue`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** A scope of a quota; an owner's leads to its page. */
function Scope({ of }: { of: string }) {
  const owner = /^owner:([^*]+)$/.exec(of)?.[1];
  return owner === undefined ? of : <Link href={ownerPath(owner)}>{of}</Link>;
}

function Limits() {
  const queues = useCall("names.list", { of: "queue" });
  return (
    <Panel title="Limits by owner" end={<SetLimit />}>
      <Loaded of={queues}>
        {({ names }) =>
          names.length === 0 ? (
            <Empty>{words.now.noQueues}</Empty>
          ) : (
            <ul className="rows">
              {names.map((queue) => (
                <LimitsOf key={queue} queue={queue} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** A button that asks for a limit. @param preset the owner that is proposed */
export function SetLimit(preset: { owner?: string }) {
  return (
    <Change
      title="Set a limit"
      fields={["queue", "owner", "runs"]}
      preset={preset}
      hint="Runs of one owner that may be queued or running in a queue at once. Owner *: each without its own. Empty: no limit."
      does="queues.limit"
      input={({ queue = "", owner = "", runs }) => ({ queue, owner, runs: runs ? Number(runs) : null })}
    />
  );
}

function LimitsOf({ queue }: { queue: string }) {
  const { data, error } = useCall("queues.limits", { queue });
  const limits = Object.entries(data?.limits ?? {});
  return (
    <li>
      <strong className="any">{queue}</strong>
      {limits.length === 0 && !error ? <span className="soft">no limit</span> : null}
      {error ? <span className="bad">{error.message}</span> : null}
      {limits.map(([owner, runs]) => (
        <span key={owner} className="any">
          {owner === "*" ? "each owner" : <Link href={ownerPath(owner)}>{owner}</Link>}: {words.runs(runs)}
        </span>
      ))}
    </li>
  );
}

function Types() {
  const types = useCall("types.list", {});
  return (
    <Panel
      title="Task types"
      end={
        <Change
          title="Allow types"
          fields={["types"]}
          optional
          hint="Puts of other types are refused; stored tasks stay. Names with spaces between; empty: any type."
          does="types.allow"
          input={({ types = "" }) => ({ types: wordsIn(types) })}
        />
      }
    >
      <Loaded of={types}>
        {({ types }) => (
          <p className="body any">{types.length === 0 ? "Any type may be put." : types.join(", ")}</p>
        )}
      </Loaded>
    </Panel>
  );
}

interface ChangeProps<Name extends OperationName> {
  title: string;
  /** Names of the texts that it asks for; the first one is required. */
  fields: readonly (keyof typeof w.fields)[];
  optional?: boolean;
  preset?: Typed;
  hint?: string;
  does: Name;
  input: (typed: Typed) => InputTo<Name>;
  children?: ReactNode;
}

/** A button for those who define, and its dialog. */
function Change<Name extends OperationName>(props: ChangeProps<Name>) {
  const { title, fields, optional = false, preset = {}, hint, does, input, children } = props;
  const { define } = useMe();
  const [typed, setTyped] = useState<Typed>();
  if (!define) return null;
  return (
    <>
      <Button onClick={() => setTyped(preset)}>{title}</Button>
      {typed === undefined ? null : (
        <Confirm
          title={title}
          act={words.edit.save}
          does={does}
          input={input(typed)}
          says="Stored."
          onClose={() => setTyped(undefined)}
        >
          {hint === undefined ? null : <p>{hint}</p>}
          {fields.map((field, i) => (
            <TextField
              key={field}
              label={w.fields[field]}
              path={field}
              of={field}
              required={i === 0 && !optional}
              value={typed[field] ?? ""}
              onSet={(to) => setTyped({ ...typed, [field]: to })}
            />
          ))}
          {children}
        </Confirm>
      )}
    </>
  );
}
