import { Dialog } from "../parts/dialog.js";

type Texts = readonly (readonly [name: string, meaning: string])[];

const KEYS: Texts = [
  ["Ctrl K", "Go to a task, an owner, a queue or a page, or do something with what is open"],
  ["/", "Search tasks"],
  ["j, k", "Next and previous row; of tasks and runs, the page of each stands beside the list"],
  ["Enter", "Open the row"],
  ["Space", "Select the row"],
  ["u", "Undo what was just done"],
  ["r", "Run the open or chosen task now, or the run again"],
  ["p", "Pause it, or resume it"],
  ["e", "Edit it"],
  ["f", "Freeze it"],
  ["g n", "Now"],
  ["g t", "Tasks"],
  ["g r", "Runs"],
  ["g e", "Errors"],
  ["g h", "Held"],
  ["Esc", "Close a dialog or what stands beside the list, or leave a field"],
  ["?", "This help"],
];

const COMMANDS: Texts = [
  ["carillon status", "is everything on time?"],
  ["carillon list", "all tasks, and when each runs next"],
  ["carillon explain TASK TIME", "why did it, or did it not, run then?"],
  ["carillon journal --failures", "what failed"],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <Pairs of={KEYS} as="kbd" />
      <h3>The same from a terminal</h3>
      <Pairs of={COMMANDS} as="code" />
    </Dialog>
  );
}

function Pairs({ of, as: Name }: { of: Texts; as: "kbd" | "code" }) {
  return (
    <dl className="facts">
      {of.map(([name, meaning]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>
            <Name>{name}</Name>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}
