import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";

interface MoveOptions extends Globals {
  queue?: string;
  wait?: string;
  by?: string;
}

export const registerMove: Register = (program, out) => {
  taskCommand(program, "move", "move a task to another queue")
    .description(
      "Moves a task to another queue, with its times, pause, counters and ledger; records of its runs are deleted. Nothing is\n" +
        "claimed meanwhile. Refused, and undone, if its open runs do not end. If it is interrupted, repeat it.",
    )
    .argument("<to>", "the other queue")
    .option("--wait <duration>", "longest wait for the end of its open runs; default 5s")
    .option("--by <name>", "who")
    .action(async (task: string, to: string, _: unknown, command) => {
      const options: MoveOptions = command.optsWithGlobals();
      const { queue, owner, wait, by } = options;
      const moved = await withClient(options, (_, ops) =>
        ops.tasks.move({ ...taskRef(task, queue, owner), to, wait }, { by }),
      );
      const text = `${moved.changed ? "moved" : "is there already:"} ${task} ${moved.changed ? "to" : "in"} ${to}\n`;
      await (options.json ? out.json(moved) : out.write(text));
    });
};
