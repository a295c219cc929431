import type { ComponentProps, ReactNode } from "react";
import { UNREACHABLE } from "../lib/api.js";
import { later } from "../lib/later.js";
import { Boundary } from "./boundary.js";
import { notify } from "./notices.js";

const Body = later(() => import("./dialog-body.js"));

/** A modal dialog: it takes the focus and gives it back, and Escape closes it. */
export function Dialog(props: ComponentProps<typeof Body>) {
  return (
    <Opens onClose={props.onClose}>
      <Body {...props} />
    </Opens>
  );
}

/** A dialog whose code is loaded when it opens. If that fails, a notice says so. */
export function Opens({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const fail = () => {
    notify("bad", UNREACHABLE);
    onClose();
  };
  return <Boundary onError={fail}>{children}</Boundary>;
}
