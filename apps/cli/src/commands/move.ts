import { type Globals, type Register, taskCommand, taskRef, type Use } from "../command.js";

interface MoveOptions extends Globals {
  queue?: string;
  wait?: string;
  by?: string;
}

export const registerMove: Register = (program) => {
  taskCommand(program, "move", "move a task to another queue")
    .description(
      "Moves a task to another queue, with its times, pause, counters and skips; records of its runs are deleted. Nothing is\n" +
        "claimed meanwhile. Refused, and undone, if its open runs do not end. If it is interrupted, repeat it.",
    )
    .argument("<to>", "the other queue")
    .option("--wait <duration>", "longest wait for the end of its open runs; default 5s")
    .option("--by <name>", "who")
    .answer(
      ({ ops, options: { queue, owner, wait, by } }: Use<MoveOptions>, task: string, to: string) =>
        ops.tasks.move({ ...taskRef(task, queue, owner), to, wait }, { by }),
      ({ changed }, [task, to]) =>
        `${changed ? "moved" : "is there already:"} ${task} ${changed ? "to" : "in"} ${to}\n`,
    );
};
