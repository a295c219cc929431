import { holds, holdsOf } from "../holds.js";
import { operation } from "../operation.js";
import { dryRun } from "../shapes.js";
import { silence, silenceInput, silenceOf } from "./silence.js";

export const putSilence = operation({
  http: "POST /silences",
  role: "operator",
  reach: "owner",
  logs: "silence",
  once: "script",
  example: { owner: "acme", until: "2100-01-01T00:00:00Z" },
  summary:
    "Silences alerts until a time, or until their cause is gone: those that match are recorded, and not delivered, not later either.",
  input: silenceInput.extend({
    dryRun: dryRun.describe(
      "Silence nothing, count what it would silence. The id in that answer names nothing.",
    ),
  }),
  output: silence.extend({ holds }),
  status: [200, 201],
  async run(call, { dryRun, ...input }) {
    const silence = await silenceOf(call, input);
    const { id, owner, task, queue, kind, cause, until, note } = silence;
    if (!dryRun) {
      await call.store.alerts.silence(silence);
      call.log({ owner, id: task, queue }, { details: { silence: id, until, kind, cause, note } });
    }
    return { ...silence, holds: await holdsOf(call.scope, silence, silence) };
  },
});
