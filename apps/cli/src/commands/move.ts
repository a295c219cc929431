import { type Register, taskCommand, taskRef } from "../command.js";

export const registerMove: Register = (program) => {
  taskCommand(program, "move", "move a task to another queue")
    .description(
      "Moves a task to another queue, with its times, pause, counters and skips; records of its runs are deleted. Nothing is\n" +
        "claimed meanwhile. Refused, and undone, if its open runs do not end. If it is interrupted, repeat it.",
    )
    .argument("<to>", "the other queue")
    .flag("--wait <duration>", "longest wait for the end of its open runs; default 5s")
    .flag("--by <name>", "who")
    .answer(
      ({ ops, options: { queue, owner, wait, by } }, task: string, to: string) =>
        ops.tasks.move({ ...taskRef(task, queue, owner), to, wait }, { by }),
      ({ changed }, [task, to]) =>
        `${changed ? "moved" : "is there already:"} ${task} ${changed ? "to" : "in"} ${to}\n`,
    );
};
