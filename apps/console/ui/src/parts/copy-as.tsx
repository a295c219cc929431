import type { InputTo, OperationName } from "@carillon/ops";
import { useState } from "react";
import { madeBy } from "../lib/api.js";
import { FORMS } from "../lib/copy-as.js";
import { useMe } from "../lib/me.js";
import { Button, Chips } from "./button.js";
import { notify } from "./notices.js";

type Form = keyof typeof FORMS;

/** The same call as a command, a request or a line of code. */
export function CopyAs<Name extends OperationName>({ name, input }: { name: Name; input: InputTo<Name> }) {
  const { namespace } = useMe();
  const [form, setForm] = useState<Form>("cli");
  const text = FORMS[form]({ ...madeBy(name, input), namespace });
  // Browsers have it at `https:` and on this machine.
  const { clipboard } = navigator as Partial<Navigator>;
  return (
    <details className="small">
      <summary>Copy as command, curl or code</summary>
      <div className="chips">
        <Chips
          names={Object.keys(FORMS) as Form[]}
          text={(name) => (name === "curl" ? name : name.toUpperCase())}
          chosen={form}
          onPick={setForm}
        />
        {clipboard ? (
          <Button onClick={() => void clipboard.writeText(text).then(() => notify("ok", "Copied."))}>
            Copy
          </Button>
        ) : null}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long one is scrolled with the keyboard */}
      <pre tabIndex={0}>{text}</pre>
    </details>
  );
}
