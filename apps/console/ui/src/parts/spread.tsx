import { useState } from "react";
import { words } from "../words.js";
import { Confirm, TextField } from "./confirm.js";
import { notifyOfMany } from "./notices.js";

const w = words.spread;

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
      title={w.title}
      act={w.act}
      does="tasks.spread"
      input={{ ...filter, at, jitter }}
      shows={jitter !== "" && "first"}
      onDone={(done) => notifyOfMany("spread", done)}
      onClose={onClose}
    >
      <TextField label={w.jitter} hint={w.hint} path="jitter" value={jitter} required onSet={setJitter} />
    </Confirm>
  );
}
