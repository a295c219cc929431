import { countText } from "@carillon/ops/words";
import { Link } from "wouter";
import { shortName, taskPath } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { PageHead } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { Relative } from "../parts/time.js";

/** Changed tasks of one set that are named. */
const NAMED = 5;

/** Sets of tasks that are defined as code: their last applies, and what others have changed since. */
export default function Sets() {
  return (
    <>
      <PageHead title="Sets" />
      <Records
        title="Tasks that are defined as code"
        list="sets.list"
        of={({ sets }) => sets}
        name={({ name }) => name}
        columns={[
          ({ name }) => (
            <Link href={`/tasks?set=${encodeURIComponent(name)}`} data-row>
              {name}
            </Link>
          ),
          ({ members }) => countText(members, "task"),
          ({ version }) => version !== undefined && <span className="soft">{`version ${version}`}</span>,
          ({ at, by }) => (
            <span className="soft end">
              applied {by === undefined ? "" : `by ${by}`} <Relative at={at} />
            </span>
          ),
          ({ applying }) =>
            applying !== undefined && (
              <span className="wide small">An apply was interrupted, or is going on: repeat it.</span>
            ),
          ({ name }) => <Drift name={name} />,
        ]}
        none="There is none. carillon apply makes one of a carillon.config file."
      />
    </>
  );
}

/** Tasks that others have changed or deleted since the last apply. */
function Drift({ name }: { name: string }) {
  const { data } = useCall("sets.drift", { set: name });
  if (data === undefined) return null;
  const { drift, found, set } = data;
  const lost = Math.max(0, set.members - found);
  if (drift.length + lost === 0)
    return <span className="wide small soft">Nobody has changed its tasks since.</span>;
  return (
    <span className="wide small">
      {`Since then, others have changed ${drift.length}${lost === 0 ? "" : ` and deleted ${lost}`} of its tasks:`}{" "}
      {drift.slice(0, NAMED).map((task) => (
        <Link key={taskPath(task)} href={taskPath(task)}>
          {shortName(task)}{" "}
        </Link>
      ))}
    </span>
  );
}
