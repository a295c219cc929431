import type { InputTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { useState } from "react";
import { useLocation } from "wouter";
import { Ask } from "./ask.js";
import { notify } from "./notices.js";

type Runs = Omit<InputTo<"runs.replayMany">, "perMinute" | "key" | "dryRun">;

/** Runs runs again at a pace, and shows before how many and until when. Leads to the progress. */
export function ReplayDialog({ title, of, onClose }: { title: string; of: Runs; onClose: () => void }) {
  const [, navigate] = useLocation();
  // Sent twice, a call starts nothing twice.
  const [key] = useState(() => Math.random().toString(36).slice(2));
  return (
    <Ask
      title={title}
      act="Run again"
      does="runs.replayMany"
      given={{ ...of, key }}
      fields={["perMinute"]}
      looks={{
        perMinute: { first: "60", required: true, label: "Runs a minute, of all tasks together", hint: "" },
      }}
      shows="first"
      onDone={({ total, batch }) => {
        notify("ok", `${countText(total, "run is", "runs are")} run again.`);
        if (batch !== undefined) navigate(`/runs?filter=backfills&batch=${batch}`);
      }}
      onClose={onClose}
    >
      <p>Each keeps its nominal time and its payload. It waits for a run of its task that is in its way.</p>
    </Ask>
  );
}
