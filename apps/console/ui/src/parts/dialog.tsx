import { type ComponentProps, lazy, Suspense } from "react";

const Body = lazy(() => import("./dialog-body.js"));

/** A modal dialog: it takes the focus and gives it back, and Escape closes it. Loaded when the first one opens. */
export function Dialog(props: ComponentProps<typeof Body>) {
  return (
    <Suspense>
      <Body {...props} />
    </Suspense>
  );
}
