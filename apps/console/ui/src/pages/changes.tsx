import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { Link, useSearchParams } from "wouter";
import { type Named, shortName, taskPath } from "../lib/api.js";
import { usePages } from "../lib/query.js";
import { timeIn } from "../lib/request.js";
import { doneToMany } from "../lib/undo.js";
import { AskButton } from "../parts/ask.js";
import { FieldTable, labelOf } from "../parts/changed.js";
import { Filters } from "../parts/filters.js";
import { Loaded, More, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { Relative, Time } from "../parts/time.js";

const NAMES = ["task", "owner", "queue", "by"] as const;

/** Details that are UTC ms. */
const TIMES: ReadonlySet<string> = new Set(["at", "from", "to", "until"]);

type Page = AnswerTo<"changes.list">;
type Change = Page["changes"][number];

const UNDO = {
  does: "changes.undo",
  title: "Undo",
  act: "Undo",
  shows: "first",
  onDone: (done: AnswerTo<"changes.undo">) => doneToMany("undo", done),
  children: (
    <p>
      Each of these tasks gets its former definition again; deleted ones come back without their runs. Those
      that were changed since are left as they are.
    </p>
  ),
} as const;

/** Changes with their authors, newest first. */
export default function Changes() {
  const [params] = useSearchParams();
  const given = Object.fromEntries(NAMES.map((name) => [name, params.get(name) ?? undefined]));
  const to = timeIn(params, "to");
  const pages = usePages("changes.list", { ...given, to, limit: 50 });
  return (
    <>
      <PageHead title="Changes" />
      <Panel
        title={
          to === undefined ? (
            "Newest first"
          ) : (
            <>
              Until <Time at={to} />
            </>
          )
        }
        end={<Filters names={NAMES} />}
      >
        <Loaded of={pages}>
          {({ pages: read }) => (
            <>
              <Rows of={read.flatMap(({ changes }) => changes)} none="No change matches.">
                {(change) => <Row key={change.id} change={change} />}
              </Rows>
              <More of={pages}>Older changes</More>
            </>
          )}
        </Loaded>
      </Panel>
    </>
  );
}

function Row({
  change: { id, at, kind, by, origin, scope, count, before, after, details, undo },
}: {
  change: Change;
}) {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return (
    <li>
      <Badge>{kind}</Badge>
      <Scope scope={scope} />
      {count === undefined ? null : <span>{countText(count, "task")}</span>}
      <span className="soft">
        {by ?? "no name given"} · {origin}
      </span>
      <span className="end soft">
        <Relative at={at} /> · <Time at={at} />
      </span>
      {undo ? <AskButton {...UNDO} given={{ id }} /> : null}
      {details === undefined ? null : <Details of={details} />}
      {fields.length === 0 ? null : (
        <details className="wide" open={before !== undefined && after !== undefined}>
          <summary className="small soft">{countText(fields.length, "field")}</summary>
          <FieldTable before={before} after={after} />
        </details>
      )}
    </li>
  );
}

/** Further facts of a change, with times as such. */
function Details({ of }: { of: object }) {
  return (
    <p className="wide inline small soft">
      {Object.entries(of).map(([name, value]) => (
        <span key={name} className="any">
          {labelOf(name)}:{" "}
          {TIMES.has(name) && typeof value === "number" ? (
            <Time at={value} />
          ) : typeof value === "string" ? (
            value
          ) : (
            <code>{JSON.stringify(value)}</code>
          )}
        </span>
      ))}
    </p>
  );
}

function Scope({ scope }: { scope: Change["scope"] }) {
  if (scope.id !== undefined && scope.queue !== undefined && scope.owner !== undefined) {
    const name = scope as Named;
    return (
      <Link href={taskPath(name)} data-row>
        {shortName(name)}
      </Link>
    );
  }
  const named = Object.entries(scope).filter(([, value]) => value !== undefined);
  return <span>{named.map(([name, value]) => `${name} ${value}`).join(", ")}</span>;
}
