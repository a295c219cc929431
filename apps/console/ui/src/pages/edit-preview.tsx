import type { AnswerTo } from "@carillon/ops";
import { countText, duration } from "@carillon/ops/words";
import type { TaskInput } from "@carillon/sdk";
import type { Draft } from "../lib/definition.js";
import { useCall, useLater } from "../lib/query.js";
import { shortTime, useNow, zone } from "../lib/time.js";
import { Loaded, Panel, Scroll, TableHead } from "../parts/page.js";
import { Prose } from "../parts/time.js";
import { Year } from "./edit-year.js";

const COUNT = 10;

type Preview = AnswerTo<"tasks.validate">;

/** The server's answer to a put of the draft. */
export function usePreview(draft: Draft | undefined) {
  const asked = useLater(draft) ?? {};
  const { id, owner, schedule } = asked as { id?: string; owner?: string; schedule?: unknown };
  // Shows times even before all names are filled in.
  const named = [id, asked["queue"], asked["type"]].every(Boolean);
  const part = { schedule, ...(id ? { id, ...(owner ? { owner } : {}) } : {}) };
  return useCall(
    "tasks.validate",
    draft && {
      ...(named ? { task: unchecked(asked) } : part),
      count: COUNT,
      year: true,
    },
  );
}

interface Props {
  preview: ReturnType<typeof usePreview>;
  stored: Draft | undefined;
}

/** The preview of a draft, and its next times, next to those of the stored definition. */
export function EditPreview({ preview, stored }: Props) {
  const before = useCall("tasks.validate", stored && { task: unchecked(stored), count: COUNT });
  return (
    <Panel title="Next times">
      <div className="body stack" aria-live="polite">
        <Loaded of={preview}>{(data) => <Previewed {...{ data, before: before.data }} />}</Loaded>
      </div>
    </Panel>
  );
}

function Previewed({ data, before }: { data: Preview; before: Preview | undefined }) {
  return (
    <>
      <p>
        <strong>
          <Prose of={data.humanized} />
        </strong>{" "}
        <code className="soft">{data.canonical}</code>
      </p>
      {data.warnings.map(({ code, message, remedy }) => (
        <p key={code} className="note" data-tone="warn">
          <span>
            <Prose of={message} />
          </span>{" "}
          <span className="soft">
            <Prose of={remedy} />
          </span>
        </p>
      ))}
      {data.year ? <Year days={data.year} timezone={data.timezone} /> : null}
      {before && differ(before, data) ? <Diff before={before} after={data} /> : <Times {...data} />}
      {data.excluded.length === 0 ? null : (
        <p className="soft">{`${countText(data.excluded.length, "time is", "times are")} excluded before these.`}</p>
      )}
      {data.exhausted ? <p className="soft">Nothing follows these.</p> : null}
    </>
  );
}

/** The server checks it. */
function unchecked(draft: Draft): TaskInput {
  return draft as unknown as TaskInput;
}

/** The next times in the task's zone, the viewer's, and UTC. */
function Times({ next, timezone }: Pick<Preview, "next" | "timezone">) {
  const now = useNow();
  const zones = [...new Set([timezone, ...zone.choices])];
  return (
    <Scroll label="Next times">
      <table className="plain">
        <TableHead of={zones} />
        <tbody>
          {next.map((time) => (
            <tr key={time.nominal} data-noted={time.notes.length > 0 || undefined}>
              {zones.map((zone, i) => (
                <td key={zone}>
                  {shortTime(time.nominal, zone, now)}
                  {i === 0 ? <Notes time={time} /> : null}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Notes about clock changes at night, exclusions, and jitter. */
function Notes({ time: { due, nominal, notes } }: { time: Preview["next"][number] }) {
  return (
    <>
      {due === undefined || due === nominal ? null : (
        <span className="small soft"> {`+${duration(due - nominal)}`}</span>
      )}
      {notes.map(({ code, text }) => (
        <span key={code} className="block small note" data-tone="warn">
          <Prose of={text} />
        </span>
      ))}
    </>
  );
}

function differ(before: Preview, after: Preview): boolean {
  const times = ({ next }: Preview) => next.map(({ nominal, due }) => due ?? nominal).join();
  return times(before) !== times(after);
}

/** Old and new times in two columns, equal ones in the same row. */
function Diff({ before, after }: { before: Preview; after: Preview }) {
  const now = useNow();
  const of = (preview: Preview) => new Map(preview.next.map((time) => [time.due ?? time.nominal, time]));
  const [old, new_] = [of(before), of(after)];
  const all = [...new Set([...old.keys(), ...new_.keys()])].sort((a, b) => a - b);
  return (
    <Scroll label="Next times">
      <table className="plain diff">
        <caption>{`Old and new times; ${[...old.keys()].filter((at) => new_.has(at)).length} are the same.`}</caption>
        <thead>
          <tr>
            <th scope="col">Stored · {before.timezone}</th>
            <th scope="col">Yours · {after.timezone}</th>
          </tr>
        </thead>
        <tbody>
          {all.map((at) => {
            const kept = old.get(at);
            const come = new_.get(at);
            return (
              <tr key={at}>
                <td data-tone={kept && !come ? "bad" : undefined}>
                  {kept ? `${come ? "" : "− "}${shortTime(at, before.timezone, now)}` : ""}
                </td>
                <td data-tone={come && !kept ? "ok" : undefined}>
                  {come ? (
                    <>
                      {kept ? "" : "+ "}
                      {shortTime(at, after.timezone, now)}
                      <Notes time={come} />
                    </>
                  ) : null}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}
