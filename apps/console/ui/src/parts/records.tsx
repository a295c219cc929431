import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { createElement, type ReactNode } from "react";
import { useCall } from "../lib/query.js";
import { Loaded, Panel, Rows } from "./page.js";

interface Props<List extends OperationName, Item> {
  title: string;
  /** The buttons of its head. */
  end?: ReactNode;
  list: List;
  input?: InputTo<List>;
  /** The records of an answer. */
  of: (answer: AnswerTo<List>) => readonly Item[];
  /** A record's name, which no other has. */
  name: (item: Item) => string;
  /** Parts of a row; a text stands for itself, and the first one is strong. */
  columns: readonly ((item: Item) => ReactNode)[];
  /** Text if there is none. */
  none: string;
}

/** A panel with the records that an operation lists, one in a row. */
export function Records<List extends OperationName, Item>(props: Props<List, Item>) {
  const { title, end, list, input, of, name, columns, none } = props;
  const answer = useCall(list, input ?? ({} as InputTo<List>));
  return (
    <Panel title={title} end={end}>
      <Loaded of={answer}>
        {(data) => (
          <Rows of={of(data)} none={none}>
            {(item) =>
              createElement("li", { key: name(item) }, ...columns.map((part, i) => shown(part(item), i)))
            }
          </Rows>
        )}
      </Loaded>
    </Panel>
  );
}

/** A part of a row. The first text is strong. */
function shown(part: ReactNode, place: number): ReactNode {
  if (typeof part !== "string" || part === "") return part;
  return createElement(place === 0 ? "strong" : "span", { className: "any" }, part);
}
