import { Dialog as Ariakit, DialogDismiss, DialogHeading } from "@ariakit/react";
import { type ReactNode, useState } from "react";
import { mayLeave, unsaved } from "../lib/unsaved.js";

interface Props {
  title: string;
  onClose: () => void;
  wide?: boolean;
  children: ReactNode;
}

/** Use `Dialog` of `dialog.tsx`, which loads this. */
export default function Dialog({ title, onClose, wide, children }: Props) {
  const [below] = useState(() => new Set(unsaved));
  return (
    <Ariakit
      open
      onClose={(event) => {
        if (mayLeave(below)) onClose();
        else event.preventDefault();
      }}
      backdrop={<div className="backdrop" />}
      className={wide ? "dialog wide" : "dialog"}
    >
      <DialogHeading className="any">{title}</DialogHeading>
      {children}
      {/* After the content, whose first field has the focus at the start. */}
      <DialogDismiss className="button plain">Close</DialogDismiss>
    </Ariakit>
  );
}
