import type { Register } from "../command.js";

export const registerMove: Register = (program) => {
  program
    .verb("move", "move a task to another queue")
    .calls(
      "tasks.move",
      ({ changed }, { id, to }) =>
        `${changed ? "moved" : "is there already:"} ${id} ${changed ? "to" : "in"} ${to}\n`,
    );
};
