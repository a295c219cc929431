import type { AnswerTo } from "@carillon/ops";
import { scopeText } from "@carillon/ops/words";
import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { Confirm } from "../parts/confirm.js";
import { NewFreeze, When } from "../parts/freeze.js";
import { Loaded, PageHead, Panel, Rows } from "../parts/page.js";
import { Badge } from "../parts/state.js";
import { words } from "../words.js";

const w = words.freezes;
type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** Current and coming freezes, with scope, author, reason and end. */
export default function Freezes() {
  const { act } = useMe();
  const freezes = useCall("freezes.list", {});
  const [isNew, setNew] = useState(false);
  const [lifting, setLifting] = useState<FreezeView | undefined>();
  return (
    <>
      <PageHead title={w.title}>
        <Link className="button" href="/resume">
          {words.resumePage.title}
        </Link>
        {act ? <Button onClick={() => setNew(true)}>{w.freeze}</Button> : null}
      </PageHead>
      <Panel title={w.list}>
        <Loaded of={freezes}>
          {({ freezes }) => (
            <Rows of={freezes} none={w.none}>
              {(freeze) => (
                <li key={freeze.id}>
                  <strong className="any">{scopeText(freeze)}</strong>
                  <Badge tone={freeze.active ? "warn" : "none"}>{freeze.active ? w.holds : w.later}</Badge>
                  <span className="soft">
                    <When freeze={freeze} />
                    {freeze.by === undefined ? "" : ` · ${freeze.by}`}
                  </span>
                  {act ? (
                    <Button look="end" onClick={() => setLifting(freeze)}>
                      {w.lift}
                    </Button>
                  ) : null}
                  {freeze.note === undefined ? null : <span className="wide any">{freeze.note}</span>}
                </li>
              )}
            </Rows>
          )}
        </Loaded>
      </Panel>
      {isNew ? <NewFreeze onClose={() => setNew(false)} /> : null}
      {lifting === undefined ? null : <Lift freeze={lifting} onClose={() => setLifting(undefined)} />}
    </>
  );
}

function Lift({ freeze, onClose }: { freeze: FreezeView; onClose: () => void }) {
  return (
    <Confirm
      title={w.liftTitle(scopeText(freeze))}
      act={w.lift}
      does="freezes.delete"
      input={{ id: freeze.id }}
      says={w.lifted}
      onClose={onClose}
    >
      <p>{w.liftHint}</p>
    </Confirm>
  );
}
