import { useState } from "react";
import { Link } from "wouter";
import { useMe } from "../lib/me.js";
import { Button } from "../parts/button.js";
import { Freezes, NewFreeze } from "../parts/freeze.js";
import { PageHead } from "../parts/page.js";
import { words } from "../words.js";

const w = words.freezes;

/** Current and coming freezes, with scope, author, reason and end. */
export default function FreezesPage() {
  const { act } = useMe();
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead title={w.title}>
        <Link className="button" href="/resume">
          {words.resumePage.title}
        </Link>
        {act ? <Button onClick={() => setNew(true)}>{w.freeze}</Button> : null}
      </PageHead>
      <Freezes />
      {isNew ? <NewFreeze onClose={() => setNew(false)} /> : null}
    </>
  );
}
