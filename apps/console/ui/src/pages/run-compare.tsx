import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { Run } from "@carillon/sdk";
import { Link } from "wouter";
import { firstLine, runPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { tookText } from "../lib/time.js";
import { FieldTable } from "../parts/changed.js";
import { Loaded, Panel, TableHead } from "../parts/page.js";
import { Time } from "../parts/time.js";
import { nameOf } from "../words.js";

const COLUMNS = ["", "Good run", "This run"];

/** A run beside the last good one of its task before it; what differs is marked. */
export function Compared({ id }: { id: string }) {
  const compared = useCall("runs.compare", { id });
  if (compared.data && compared.data.good === undefined) return null;
  return (
    <Panel title="Compared with the last good run">
      <div className="body stack">
        <Loaded of={compared}>{(answer) => <Both of={answer} />}</Loaded>
      </div>
    </Panel>
  );
}

function Both({ of: { run, good, definition } }: { of: AnswerTo<"runs.compare"> }) {
  if (good === undefined) return null;
  const rows = Object.entries(READS).map(([label, read]) => ({
    label,
    before: read(good) ?? "",
    after: read(run) ?? "",
  }));
  if (definition !== undefined)
    rows.push({
      label: "Definition",
      before: `number ${definition.number.before}`,
      after: `number ${definition.number.after}`,
    });
  const differs = definition && Object.keys({ ...definition.before, ...definition.after }).length > 0;
  return (
    <>
      <p>
        <Link href={runPath(good.id)}>
          The good run of <Time at={good.nominal} />
        </Link>
      </p>
      <table className="plain small stacks">
        <TableHead of={COLUMNS} />
        <tbody>
          {rows.map(({ label, before, after }) =>
            before === "" && after === "" ? null : (
              <tr key={label}>
                <td>{label}</td>
                <td className="any" data-name={COLUMNS[1]}>
                  {before || "–"}
                </td>
                <td className="any" data-name={COLUMNS[2]}>
                  {before === after ? after : <strong>{after || "–"}</strong>}
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
      {differs ? (
        <>
          <h3>The definition was changed between the two</h3>
          <FieldTable before={definition.before} after={definition.after} />
        </>
      ) : null}
    </>
  );
}

const time = (ms: number | undefined) => (ms === undefined ? undefined : duration(ms));

/** Each fact as a text, by its label. */
const READS: Readonly<Record<string, (run: Run) => string | undefined>> = {
  Outcome: ({ outcome }) => outcome,
  Error: ({ error }) => (error === undefined ? undefined : firstLine(error)),
  Took: tookText,
  Attempts: ({ attempts }) => String(attempts),
  "Late by": ({ lateMs }) => time(lateMs),
  "Waited for a worker": ({ waitMs }) => time(waitMs),
  Trigger: ({ trigger }) => nameOf(trigger),
  Payload: ({ payload }) => (payload === undefined ? "that of the task" : JSON.stringify(payload)),
  Host: ({ host }) => host,
  Worker: ({ worker }) => worker,
  Node: ({ node }) => node,
};
