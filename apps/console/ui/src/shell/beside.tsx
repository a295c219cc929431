import { X } from "lucide";
import type { ReactNode } from "react";
import { Link, Router } from "wouter";
import { besideRouter, IsBeside, showBeside } from "../lib/beside.js";
import { useKeys } from "../lib/keys.js";
import { Boundary } from "../parts/boundary.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";

/** The page of the chosen row beside its list, where the focus stays. @param children all pages */
export function Beside({ path, children }: { path: string; children: ReactNode }) {
  const close = () => {
    const row = document.querySelector<HTMLElement>("main [data-row][aria-current]");
    (row ?? document.getElementById("main"))?.focus({ preventScroll: true });
    showBeside(undefined);
  };
  useKeys({ Escape: close });
  return (
    <section className="beside" aria-label="The chosen row">
      <p className="inline small soft">
        <span>j, k: next and previous</span>
        <Link className="end" href={path}>
          Open the page
        </Link>
        <Button look="icon" aria-label="Close" title="Close (Esc)" onClick={close}>
          <Icon of={X} />
        </Button>
      </p>
      <IsBeside value={true}>
        <Router {...besideRouter}>
          <Boundary key={path}>{children}</Boundary>
        </Router>
      </IsBeside>
    </section>
  );
}
