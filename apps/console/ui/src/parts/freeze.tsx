import type { AnswerTo } from "@carillon/ops";
import { covers, duration, scopeText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { Link } from "wouter";
import { call, type Named, refOf } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useAct, useCall } from "../lib/query.js";
import { type Pattern, withPattern } from "../lib/schedule-form.js";
import { useZone } from "../lib/time.js";
import { done, type Undo } from "../lib/undo.js";
import { Ask } from "./ask.js";
import { Button, Chips } from "./button.js";
import { Days } from "./days.js";
import { Prose, Relative, Time } from "./time.js";

const KINDS = { once: "From a time to a time", windows: "In recurring windows" };
type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** The time of a freeze: its end, or its windows. */
export function FreezeTime({
  freeze: { active, activeUntil, from, until, humanized, length },
}: {
  freeze: FreezeView;
}) {
  if (humanized !== undefined) {
    return (
      <>
        {`for ${length === undefined ? "" : duration(length)} each,`} <Prose of={humanized} />
      </>
    );
  }
  const end = active ? activeUntil : until;
  return (
    <>
      {active ? "since" : "from"} <Time at={from} />
      {end === undefined ? (
        ` until it is lifted`
      ) : (
        <>
          {" "}
          to <Time at={end} /> (<Relative at={end} />)
        </>
      )}
    </>
  );
}

/** The call that makes a freeze again that was lifted. */
export function again(freeze: FreezeView): Undo {
  const { owner, tag, queue, tasks, all, active, from, until, schedule, length, note } = freeze;
  const when = schedule ? { schedule, for: length } : { until, from: active ? undefined : from };
  return { operation: "freezes.put", input: { owner, tag, queue, tasks, all, note, ...when } };
}

/** The freezes that hold a task, or will. */
export function FrozenNotes({ task }: { task: Task }) {
  const { act } = useMe();
  const { data } = useCall("freezes.list", {});
  const lift = useAct(({ id }: FreezeView) => call("freezes.delete", { id }), {
    onDone: (_, freeze) => done("It is lifted.", again(freeze)),
  });
  const its = data?.freezes.filter((one) => covers(one, task)) ?? [];
  return its.map((freeze) => (
    <p key={freeze.id} className="note" data-tone="warn">
      <span>
        {freeze.active ? `Frozen: ${scopeText(freeze)}` : `To be frozen: ${scopeText(freeze)}`},{" "}
        <FreezeTime freeze={freeze} />
        {freeze.by === undefined ? "" : `, by ${freeze.by}`}
        {freeze.note === undefined ? "" : `: ${freeze.note}`}
      </span>{" "}
      {act && freeze.tasks?.length === 1 ? (
        <Button onClick={() => lift.mutate(freeze)}>Lift</Button>
      ) : (
        <Link href="/held">Held</Link>
      )}
    </p>
  ));
}

interface NewProps {
  tasks?: readonly Named[];
  /** The owner that is proposed. */
  owner?: string;
  onClose: () => void;
}

/** Freezes a scope, or the tasks that are given: now or from a time, until a time, or in recurring windows. */
export function NewFreeze({ tasks, owner, onClose }: NewProps) {
  const zone = useZone();
  const [kind, setKind] = useState<keyof typeof KINDS>("once");
  const [begins, setBegins] = useState<Pattern>({ week: [], month: [], times: ["18:00"] });
  const windows = withPattern({ cron: "", timezone: zone }, begins);
  const kinds = (
    <div key="kinds" className="chips">
      <Chips
        names={Object.keys(KINDS) as (keyof typeof KINDS)[]}
        text={(name) => KINDS[name]}
        chosen={kind}
        onPick={setKind}
      />
    </div>
  );
  return (
    <Ask
      title="Freeze tasks"
      act="Freeze"
      does="freezes.put"
      given={{
        ...(tasks && { tasks: tasks.map(refOf) }),
        ...(kind === "windows" && { schedule: windows.length === 1 ? windows[0] : { any: windows } }),
      }}
      scopes={tasks ? undefined : ["owner", "tag", "queue", "all"]}
      fields={[
        kinds,
        ...(kind === "once"
          ? (["from", "until"] as const)
          : ([<Days key="days" pattern={begins} onEdit={setBegins} />, "for"] as const)),
        "note",
      ]}
      looks={{
        ...{ owner: { first: owner }, all: { label: "All tasks" } },
        from: { hint: "Empty: from now." },
        until: { hint: "Empty: until somebody lifts it." },
        for: {
          ...{ first: "2h", required: true, label: "Each takes" },
          hint: `For example 2h. Windows begin at the times above (${zone}).`,
        },
      }}
      says="The freeze holds."
      onClose={onClose}
    >
      <p>What falls due meanwhile is skipped with the reason frozen. Open runs go on.</p>
    </Ask>
  );
}
