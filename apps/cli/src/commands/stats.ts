import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import { facts } from "../text.js";
import { statsFacts } from "./stats-text.js";

export const registerStats: Register = (program, out) => {
  taskCommand(program, "stats", "a task's statistics since it was put").action(
    async (task: string, _: unknown, command) => {
      const options: Globals & { queue?: string } = command.optsWithGlobals();
      const stats = await withClient(options, (client) =>
        client.runs.stats(taskRef(task, options.queue, options.owner)),
      );
      if (options.json) return out.json(stats);
      await out.write(facts(statsFacts(stats), out.paint));
    },
  );
};
