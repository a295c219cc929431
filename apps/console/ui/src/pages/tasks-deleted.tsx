import { useState } from "react";
import { Link } from "wouter";
import { type Named, refOf, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Confirm } from "../parts/confirm.js";
import { CopyAs } from "../parts/copy-as.js";
import { Loaded, Panel, Rows } from "../parts/page.js";
import { Relative, Time } from "../parts/time.js";

/** Rows at first, and with each further click. */
const PAGE = 200;

interface Filter {
  readonly queue?: string | undefined;
  readonly owner?: string | undefined;
  /** A part of the name. */
  readonly search?: string | undefined;
}

/** Tasks that were deleted and can be restored, newest first. */
export function Deleted({ of: { search = "", ...filter } }: { of: Filter }) {
  const { define } = useMe();
  const [most, setMost] = useState(PAGE);
  const [chosen, setChosen] = useState<Named>();
  const deleted = useCall("deleted.list", filter);
  return (
    <Panel title="Deleted tasks">
      <p className="body soft small">
        A deleted task can be restored for 7 days, as it was last defined. Its runs and figures do not come
        back.
      </p>
      <Loaded of={deleted}>
        {({ deleted }) => {
          const rows = deleted.filter(({ task }) =>
            shortName(task).toLowerCase().includes(search.toLowerCase()),
          );
          return (
            <>
              <Rows of={rows.slice(0, most)} none="No deleted task matches.">
                {({ task, at, until }) => (
                  <li key={taskPath(task)}>
                    <Link href={taskPath(task)} data-row className="any">
                      {shortName(task)}
                    </Link>
                    <span className="soft">{task.queue}</span>
                    <span className="end soft">
                      <Relative at={at} /> · kept until <Time at={until} />
                    </span>
                    {define ? <Button onClick={() => setChosen(task)}>Restore</Button> : null}
                  </li>
                )}
              </Rows>
              {rows.length > most ? (
                <p className="body">
                  <Button look="plain" onClick={() => setMost(most + PAGE)}>
                    {`${(rows.length - most).toLocaleString("en")} more`}
                  </Button>
                </p>
              ) : null}
            </>
          );
        }}
      </Loaded>
      <div className="body">
        <CopyAs name="deleted.list" input={filter} />
      </div>
      {chosen === undefined ? null : (
        <Confirm
          title={`Restore ${shortName(chosen)}`}
          act="Restore"
          wide
          does="tasks.restore"
          input={refOf(chosen)}
          shows="first"
          says="The task is restored."
          onClose={() => setChosen(undefined)}
        />
      )}
    </Panel>
  );
}
