import type { AnswerTo } from "@carillon/ops";
import { useState } from "react";
import { ROOT } from "../lib/api.js";
import { fieldTime, useNow, useZone } from "../lib/time.js";
import { AskButton } from "../parts/ask.js";
import { Dialog } from "../parts/dialog.js";
import { PageHead } from "../parts/page.js";
import { Records } from "../parts/records.js";
import { Badge } from "../parts/state.js";
import { Time } from "../parts/time.js";

const WEEK = 7 * 24 * 3_600_000;
const MINUTE = 60_000;

/** Named tokens, and links that open the console for reading until an end. */
export default function Tokens() {
  return (
    <>
      <PageHead title="Tokens">
        <NewLink />
      </PageHead>
      <Records
        title="Named tokens"
        list="tokens.list"
        of={({ tokens }) => tokens}
        name={({ name }) => name}
        columns={[
          ({ name }) => name,
          ({ role, expired }) => <Badge tone={expired ? "bad" : "none"}>{expired ? "over" : role}</Badge>,
          ({ owners }) => (owners ? owners.join(", ") : "everything"),
          ({ expires, createdBy }) => (
            <span className="soft">
              {expires === undefined ? (
                "no end"
              ) : (
                <>
                  until <Time at={expires} />
                </>
              )}
              {createdBy === undefined ? "" : `, by ${createdBy}`}
            </span>
          ),
          ({ name }) => (
            <AskButton
              text="Revoke"
              look="end"
              title={`Revoke ${name}`}
              act="Revoke"
              danger
              does="tokens.revoke"
              given={{ name }}
            >
              <p>It opens nothing from now on, nor do the sessions that it opened.</p>
            </AskButton>
          ),
        ]}
        none="There are no named tokens. Those of the environment are not listed."
      />
    </>
  );
}

/** A button that makes a link, and shows it once. @param owner the owner that is proposed */
export function NewLink({ owner }: { owner?: string }) {
  const [made, setMade] = useState<AnswerTo<"tokens.create">>();
  const week = fieldTime(Math.ceil((useNow() + WEEK) / MINUTE) * MINUTE, useZone());
  return (
    <>
      <AskButton
        title="New link"
        act="Create"
        does="tokens.create"
        given={{ role: "viewer" }}
        looks={{
          name: { hint: "The person or the place that gets it." },
          owners: {
            first: owner,
            hint: "It shows the tasks of these alone, with spaces between. Empty: everything.",
          },
          expires: { first: week, required: true, label: "Until", hint: "" },
        }}
        onDone={setMade}
      />
      {made ? (
        <Dialog title="The link" onClose={() => setMade(undefined)}>
          <p>
            It is not shown again, and holds until its end, or until you revoke it. Whoever has it can read.
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long one is scrolled with the keyboard */}
          <pre tabIndex={0}>{`${location.origin}${ROOT}?token=${made.secret}`}</pre>
        </Dialog>
      ) : null}
    </>
  );
}
