import { back } from "../lib/meant.js";
import { fieldTime, typedTime, useNow, useZone } from "../lib/time.js";
import { Chips } from "./button.js";

const NAMES = { day: "24 hours", night: "Last night", yesterday: "Yesterday", week: "7 days" };

/** Ranges of time to pick. */
export function Ranges({ onPick }: { onPick: (range: object) => void }) {
  const ranges = back(fieldTime(useNow(), useZone()));
  return (
    <div className="chips">
      <span aria-hidden="true" className="chip-gap" />
      <Chips
        names={Object.keys(ranges) as (keyof typeof ranges)[]}
        text={(name) => NAMES[name]}
        chosen={undefined}
        onPick={(name) => onPick(ranges[name])}
      />
    </div>
  );
}

/** Bounds as the address keeps them. */
export function asTexts(range: object, zone: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(range).map(([name, at]) => [name, String(typedTime(at, zone))]));
}
