import type { AnswerTo } from "@carillon/ops";
import { useState } from "react";
import { ROOT } from "../lib/api.js";
import { useCall } from "../lib/query.js";
import { fieldTime, isoTime, typedTime, useNow, useZone } from "../lib/time.js";
import { wordsIn } from "../lib/values.js";
import { Button } from "../parts/button.js";
import { Confirm, TextField, TimeField } from "../parts/confirm.js";
import { Dialog } from "../parts/dialog.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { Time } from "../parts/time.js";
import { words } from "../words.js";

const w = words.tokens;
const WEEK = 7 * 24 * 3_600_000;
const MINUTE = 60_000;
type Made = AnswerTo<"tokens.create">;

/** Named tokens, and links that open the console for reading until an end. */
export default function Tokens() {
  const tokens = useCall("tokens.list", {});
  const [name, setName] = useState<string>();
  return (
    <>
      <PageHead title={w.title}>
        <NewLink />
      </PageHead>
      <Panel title={w.list}>
        <Loaded of={tokens}>
          {({ tokens }) => (
            <Rows of={tokens} none="There are no named tokens. Those of the environment are not listed.">
              {({ name, role, owners, expires, expired, createdBy }) => (
                <li key={name}>
                  <strong className="any">{name}</strong>
                  <Badge tone={expired ? "bad" : "none"}>{expired ? w.expired : role}</Badge>
                  <span>{owners ? owners.join(", ") : "everything"}</span>
                  <span className="soft">
                    {expires === undefined ? "no end" : w.until}{" "}
                    {expires === undefined ? "" : <Time at={expires} />}
                    {createdBy === undefined ? "" : `, ${words.by(createdBy)}`}
                  </span>
                  <Button look="end" onClick={() => setName(name)}>
                    {w.revoke}
                  </Button>
                </li>
              )}
            </Rows>
          )}
        </Loaded>
      </Panel>
      {name === undefined ? null : (
        <Confirm
          title={`Revoke ${name}`}
          act={w.revoke}
          danger
          does="tokens.revoke"
          input={{ name }}
          onClose={() => setName(undefined)}
        >
          <p>It opens nothing from now on, nor do the sessions that it opened.</p>
        </Confirm>
      )}
    </>
  );
}

/** A button that makes a link, and shows it once. @param owner the owner that is proposed */
export function NewLink({ owner }: { owner?: string }) {
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Made>();
  return (
    <>
      <Button onClick={() => setNew(true)}>{w.add}</Button>
      {isNew ? <AskLink owner={owner} onDone={setMade} onClose={() => setNew(false)} /> : null}
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

interface AskProps {
  owner: string | undefined;
  onDone: (made: Made) => void;
  onClose: () => void;
}

function AskLink({ owner = "", onDone, onClose }: AskProps) {
  const zone = useZone();
  const now = useNow();
  const [name, setName] = useState("");
  const [owners, setOwners] = useState(owner);
  const [expires, setExpires] = useState(() => fieldTime(Math.ceil((now + WEEK) / MINUTE) * MINUTE, zone));
  const named = wordsIn(owners);
  return (
    <Confirm
      title={w.add}
      act="Create"
      does="tokens.create"
      input={{
        ...{ name, role: "viewer", expires: expires && isoTime(typedTime(expires, zone)) },
        ...(named.length > 0 && { owners: named }),
      }}
      onDone={onDone}
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="The person or the place that gets it."
        path="name"
        required
        most={128}
        value={name}
        onSet={setName}
      />
      <TextField
        label="Owners"
        hint="It shows the tasks of these alone, with spaces between. Empty: everything."
        path="owners"
        of="owner"
        many
        value={owners}
        onSet={setOwners}
      />
      <TimeField
        label={`Until (${zone})`}
        path="expires"
        required
        isAhead
        value={expires}
        onSet={setExpires}
      />
    </Confirm>
  );
}
