import type { AnswerTo } from "@carillon/ops";
import type { Preview } from "@carillon/sdk";
import { shortName, taskPath } from "../lib/api.js";
import { isObject, same } from "../lib/values.js";
import { Scroll, TableHead } from "./page.js";
import { Time } from "./time.js";

/** The difference that a put makes: fields, then the next times, old and new. */
export function Changed({ of: { before, after, times } }: { of: Preview }) {
  const old = new Set(times.before.map(({ nominal }) => nominal));
  const now = new Set(times.after.map(({ nominal }) => nominal));
  const all = [...new Set([...old, ...now])].sort((a, b) => a - b);
  return (
    <div className="stack" role="status">
      <FieldTable before={before} after={after} />
      {all.every((at) => old.has(at) && now.has(at)) ? null : (
        <Scroll label="Next times">
          <table className="plain small diff">
            <TableHead of={["Next times before", "After"]} />
            <tbody>
              {all.map((at) => (
                <tr key={at}>
                  <td data-tone={now.has(at) ? undefined : "bad"}>{old.has(at) ? <Time at={at} /> : ""}</td>
                  <td data-tone={old.has(at) ? undefined : "ok"}>{now.has(at) ? <Time at={at} /> : ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </div>
  );
}

/** Tasks that an edit changes: the fields that differ and the next time of each, old and new. */
export function Edits({ of }: { of: AnswerTo<"tasks.editMany">["edits"] }) {
  const columns = ["Task", "Field", "Before", "After", "Next before", "Next after"];
  return (
    <table className="plain small stacks">
      <TableHead of={columns} />
      <tbody>
        {of.flatMap(({ preview: { before, after, times }, ...task }) =>
          differing(before, after).map(([path, was, is]) => (
            <tr key={`${taskPath(task)} ${path}`}>
              <td className="any">{shortName(task)}</td>
              <td className="any mono" data-name={columns[1]}>
                {path}
              </td>
              {[was, is].map((value, i) => (
                <td key={columns[i + 2]} className="any mono" data-name={columns[i + 2]}>
                  {JSON.stringify(value) ?? "–"}
                </td>
              ))}
              {[times.before, times.after].map(([next], i) => (
                <td key={columns[i + 4]} data-name={columns[i + 4]}>
                  {next === undefined ? "–" : <Time at={next.nominal} />}
                </td>
              ))}
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}

/** The fields that differ, with those of objects by their path: `schedule.cron`. */
function differing(before: Fields = {}, after: Fields = {}, within = ""): [string, unknown, unknown][] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [was, is] = [before[name], after[name]];
    if (same(was, is)) return [];
    if (isObject(was) && isObject(is)) return differing(was, is, `${within}${name}.`);
    return [[`${within}${name}`, was, is]];
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields that differ, old and new. */
export function FieldTable(props: {
  before?: Fields | undefined;
  after?: Fields | undefined;
  /** Heads: the field, before, after. */
  columns?: readonly string[];
}) {
  const { before, after, columns = ["Field", "Before", "After"] } = props;
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  if (fields.length === 0) return <p>No field differs.</p>;
  return (
    <table className="plain small stacks">
      <TableHead of={columns} />
      <tbody>
        {fields.map((field) => (
          <tr key={field}>
            <td className={labelOf(field) === field ? "mono" : undefined}>{labelOf(field)}</td>
            <td className="any mono" data-name={columns[1]}>
              {JSON.stringify(before?.[field]) ?? "–"}
            </td>
            <td className="any mono" data-name={columns[2]}>
              {JSON.stringify(after?.[field]) ?? "–"}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const LABELS = {
  id: "Id",
  owner: "Owner",
  queue: "Queue",
  type: "Type",
  description: "Description",
  tags: "Tags",
  schedule: "Schedule",
  payload: "Payload",
  overlap: "If a run is still going on",
  catchUp: "Times that passed while nothing ran",
};

/** The label of a task's field in the form; the API's own name if the form has none. */
export function labelOf(field: string): string {
  return Object.hasOwn(LABELS, field) ? LABELS[field as keyof typeof LABELS] : field;
}
