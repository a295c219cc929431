import { Dialog } from "../parts/dialog.js";
import { words } from "../words.js";

export function Help({ onClose }: { onClose: () => void }) {
  const { title, keys, cli, commands } = words.help;
  return (
    <Dialog title={title} onClose={onClose}>
      <dl className="facts">
        {keys.map(([key, text]) => (
          <div key={key} style={{ display: "contents" }}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <h3>{cli}</h3>
      <dl className="facts">
        {commands.map(([command, text]) => (
          <div key={command} style={{ display: "contents" }}>
            <dt>
              <code>{command}</code>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
