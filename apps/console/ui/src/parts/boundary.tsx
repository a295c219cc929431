import { Component, type ReactNode } from "react";
import { isReachable, UNREACHABLE } from "../lib/api.js";
import { PartMissing } from "../lib/later.js";
import { Button } from "./button.js";
import { notify } from "./notices.js";

interface Props {
  children: ReactNode;
  /** Called instead of showing the error. */
  onError?: () => void;
}

/** Interval in ms at which a part that could not be loaded is tried again. */
const RETRY_MS = 3_000;

/** Keeps the rest of the page usable if a part of it fails, or cannot be loaded; then it is tried again. */
export class Boundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false };
  #retry: ReturnType<typeof setTimeout> | undefined;

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidCatch(error: unknown) {
    this.props.onError?.();
    if (error instanceof PartMissing && !this.props.onError)
      this.#retry = setTimeout(() => this.setState({ failed: false }), RETRY_MS);
  }

  override componentWillUnmount() {
    clearTimeout(this.#retry);
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    if (this.props.onError) return null;
    return (
      <div className="note" data-tone="bad" role="alert">
        <span>This part of the page cannot be shown.</span>
        <Button onClick={() => void reload()}>Reload</Button>
      </div>
    );
  }
}

/** Reloads the page, unless the browser would show an error of its own instead. */
async function reload(): Promise<void> {
  if (await isReachable()) location.reload();
  else notify("bad", UNREACHABLE);
}
