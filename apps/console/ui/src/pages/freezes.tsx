import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import { useCall } from "../lib/query.js";
import { Button } from "../parts/button.js";
import { FreezeRows, NewFreeze } from "../parts/freeze.js";
import { Loaded, PageHead, Panel } from "../parts/page.js";
import { words } from "../words.js";

const w = words.freezes;
/** Current and coming freezes, with scope, author, reason and end. */
export default function Freezes() {
  const { act } = useMe();
  const freezes = useCall("freezes.list", {});
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead title={w.title}>
        <Link className="button" href="/resume">
          {words.resumePage.title}
        </Link>
        {act ? <Button onClick={() => setNew(true)}>{w.freeze}</Button> : null}
      </PageHead>
      <Panel title="Freezes">
        <Loaded of={freezes}>{({ freezes }) => <FreezeRows of={freezes} />}</Loaded>
      </Panel>
      {isNew ? <NewFreeze onClose={() => setNew(false)} /> : null}
    </>
  );
}
