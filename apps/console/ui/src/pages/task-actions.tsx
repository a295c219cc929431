import type { Task } from "@carillon/sdk";
import { useState } from "react";
import { useLocation } from "wouter";
import { refOf, runPath, shortName } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { pauseOf } from "../lib/undo.js";
import { Ask } from "../parts/ask.js";
import { labelOf } from "../parts/changed.js";
import { Check } from "../parts/confirm.js";
import { NewFreeze } from "../parts/freeze.js";
import { notify } from "../parts/notices.js";
import { PayloadField } from "../parts/payload-field.js";
import { CATCH_UPS, MISSED, OVERLAPS } from "../words.js";

export type Action = "trigger" | "pause" | "resume" | "freeze" | "backfill" | "delete";

interface Props {
  task: Task;
  onClose: () => void;
}

const OVERLAP = {
  label: labelOf("overlap"),
  choices: { "": "as the task says", ...OVERLAPS },
};

/** The dialog of an action on one task. */
export function TaskDialog({ action, ...props }: Props & { action: Action }) {
  const dialogs = {
    trigger: Trigger,
    pause: Pause,
    resume: Resume,
    freeze: Freeze,
    backfill: Backfill,
    delete: Delete,
  };
  const { [action]: Shown } = dialogs;
  return <Shown {...props} />;
}

function Trigger({ task, onClose }: Props) {
  const { define } = useMe();
  const [other, setOther] = useState(false);
  const [payload, setPayload] = useState<unknown>(task.payload);
  const [, navigate] = useLocation();
  return (
    <Ask
      title={`Run ${shortName(task)} now`}
      act="Run now"
      does="tasks.trigger"
      given={{ ...refOf(task), ...(other && { payload }) }}
      fields={[
        "overlap",
        define && <Check key="other" label="With another payload" checked={other} onSet={setOther} />,
        other && (
          <PayloadField
            key="payload"
            queue={task.queue}
            type={task.type}
            hint="For this run only. The task keeps its own."
            value={payload}
            onEdit={setPayload}
          />
        ),
      ]}
      looks={{ overlap: OVERLAP }}
      onDone={(done) => {
        if (done.outcome === "enqueued") navigate(runPath(done.run));
        else notify("ok", "It starts when the run in its way is over.");
      }}
      onClose={onClose}
    />
  );
}

function Pause({ task, onClose }: Props) {
  return (
    <Ask
      title={`Pause ${shortName(task)}`}
      act="Pause"
      does="tasks.pause"
      given={refOf(task)}
      fields={({ until }) => ["note", "until", !until && "cancelQueued"]}
      looks={{ cancelQueued: { label: "Also cancel runs that wait for a worker" } }}
      says="The task is paused."
      onClose={onClose}
    />
  );
}

function Resume({ task, onClose }: Props) {
  const hint = `Its catch-up policy: ${CATCH_UPS[task.catchUp]}.`;
  return (
    <Ask
      title={`Resume ${shortName(task)}`}
      act="Resume"
      does="tasks.resume"
      given={refOf(task)}
      fields={["missed"]}
      looks={{ missed: { ...MISSED, hint } }}
      says="The task is resumed."
      undo={pauseOf(task)}
      onClose={onClose}
    />
  );
}

function Freeze({ task, onClose }: Props) {
  return <NewFreeze tasks={[task]} onClose={onClose} />;
}

function Backfill({ task, onClose }: Props) {
  const [, navigate] = useLocation();
  return (
    <Ask
      title={`Run past times of ${shortName(task)}`}
      act="Run them"
      does="backfills.start"
      given={refOf(task)}
      fields={["from", "to", "overlap", "every"]}
      looks={{
        from: { past: true, required: true, hint: "" },
        to: { past: true, required: true, label: "To, included", hint: "" },
        overlap: OVERLAP,
        every: { label: "At most one every", hint: "For example 10s. Empty: as fast as workers take them." },
      }}
      shows="first"
      onDone={({ id }) => id !== undefined && navigate(`/runs?filter=backfills&id=${id}`)}
      onClose={onClose}
    />
  );
}

function Delete({ task, onClose }: Props) {
  const [, navigate] = useLocation();
  return (
    <Ask
      title={`Delete ${shortName(task)}`}
      act="Delete"
      danger
      does="tasks.delete"
      given={refOf(task)}
      says="The task is deleted."
      onDone={() => navigate("/tasks")}
      onClose={onClose}
    >
      <p>The task is deleted with its runs and its skips. Its definition can be restored for 7 days.</p>
    </Ask>
  );
}
