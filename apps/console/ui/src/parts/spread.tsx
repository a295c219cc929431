import { useState } from "react";
import { Confirm, TextField } from "./confirm.js";
import { notifyOfMany } from "./notices.js";

interface Props {
  /** The start of the minute. */
  at: number;
  filter: Readonly<Record<string, string | undefined>>;
  /** The jitter that is proposed. */
  jitter: string;
  onClose: () => void;
}

/** Gives a jitter to all tasks that start in a minute, and shows before how the load changes. */
export function SpreadDialog({ at, filter, jitter: proposed, onClose }: Props) {
  const [jitter, setJitter] = useState(proposed);
  return (
    <Confirm
      title="Spread the starts of this minute"
      act="Spread"
      does="tasks.spread"
      input={{ ...filter, at, jitter }}
      shows={jitter !== "" && "first"}
      onDone={(done) => notifyOfMany("spread", done)}
      onClose={onClose}
    >
      <TextField
        label="Jitter"
        hint="Each of these tasks starts up to this time later, by its name. Those that have a jitter, or start again within twice this time, stay as they are."
        path="jitter"
        value={jitter}
        required
        onSet={setJitter}
      />
    </Confirm>
  );
}
