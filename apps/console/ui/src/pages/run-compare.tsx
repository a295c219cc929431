import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { Run } from "@carillon/sdk";
import { Link } from "wouter";
import { firstLine, runPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { FieldTable } from "../parts/changed.js";
import { Loaded, Panel, TableHead } from "../parts/page.js";
import { Time } from "../parts/time.js";
import { words } from "../words.js";

const w = words.compare;

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
  const rows = Object.entries(w.fields).map(([name, label]) => {
    const read = READS[name as keyof typeof READS];
    return { label, before: read(good) ?? "", after: read(run) ?? "" };
  });
  if (definition !== undefined)
    rows.push({
      label: "Definition",
      before: w.number(definition.number.before),
      after: w.number(definition.number.after),
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
        <TableHead of={w.columns} />
        <tbody>
          {rows.map(({ label, before, after }) =>
            before === "" && after === "" ? null : (
              <tr key={label}>
                <td>{label}</td>
                <td className="any" data-name={w.columns[1]}>
                  {before || words.none}
                </td>
                <td className="any" data-name={w.columns[2]}>
                  {before === after ? after : <strong>{after || words.none}</strong>}
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
const took = ({ started, finished }: Run) =>
  started === undefined || finished === undefined ? undefined : finished - started;

/** Each fact as a text. */
const READS: Record<keyof typeof w.fields, (run: Run) => string | undefined> = {
  outcome: ({ outcome }) => outcome,
  error: ({ error }) => (error === undefined ? undefined : firstLine(error)),
  took: (run) => time(took(run)),
  attempts: ({ attempts }) => String(attempts),
  late: ({ lateMs }) => time(lateMs),
  waited: ({ waitMs }) => time(waitMs),
  trigger: ({ trigger }) => words.triggers[trigger],
  payload: ({ payload }) => (payload === undefined ? "that of the task" : JSON.stringify(payload)),
  host: ({ host }) => host,
  worker: ({ worker }) => worker,
  node: ({ node }) => node,
};
