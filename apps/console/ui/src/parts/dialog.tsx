import type { ComponentProps } from "react";
import { later } from "../lib/later.js";
import { words } from "../words.js";
import { Boundary } from "./boundary.js";
import { notify } from "./notices.js";

const Body = later(() => import("./dialog-body.js"));

/** A modal dialog: it takes the focus and gives it back, and Escape closes it. If it cannot be loaded, a notice says so. */
export function Dialog(props: ComponentProps<typeof Body>) {
  const fail = () => {
    notify("bad", words.shell.unreachable);
    props.onClose();
  };
  return (
    <Boundary onError={fail}>
      <Body {...props} />
    </Boundary>
  );
}
