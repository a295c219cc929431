import type { AnswerTo } from "@carillon/ops";
import { readEntries } from "../calendar-entries.js";
import type { Register } from "../command.js";
import type { Output } from "../output.js";
import { type Column, rows, table } from "../table.js";
import { counted, printable } from "../text.js";
import { when } from "../times.js";

/** Author stored for a put that names none. */
const NOBODY = "-";

export const registerCalendars: Register = (program, out) => {
  const calendars = program.verb(
    "calendars",
    "shared calendars: holidays and the like, which schedules leave out by name",
    "Shared calendars: dates and calendar events that schedules leave out by name,\n" +
      '{"except":[{"named":NAME}]}. When one changes, its tasks are replanned.',
  );
  calendars
    .verb(
      "put",
      "store a calendar, or change it",
      "Stores a calendar, or changes it. Idempotent: identical data does not change.\n" +
        "FILE holds a JSON list, or one entry a line with # comments: a date, 2026-12-25,\n" +
        "or a calendar event, *-05-01, Sat,Sun, *-12-24 12..23:* Europe/Berlin.",
    )
    .calls(
      "calendars.put",
      ({ name, outcome, revision, replanned, moved }, { entries }) => {
        if (moved) return movedText(name, outcome, moved, out);
        const size = counted(entries.length, "entry", "entries");
        const then = replanned === 0 ? "" : `; replanned: ${replanned} of its tasks`;
        return `${outcome} ${name}: ${size}, revision ${revision}${then}\n`;
      },
      {
        but: ["entries"],
        input: async (_, { options: { io } }, [, file]) => ({
          entries: [...(await readEntries(io, file as string | undefined))],
        }),
      },
    )
    .argument("[file]", "a file; - or nothing for standard input");
  calendars
    .verb("list", "list the calendars", "Lists the calendars, and how many tasks name each.")
    .calls("calendars.list", rows(out, "calendars", COLUMNS, "No calendars."));
  calendars
    .verb("show", "show a calendar's entries", "Shows a calendar's entries, one a line: what put reads.")
    .calls("calendars.get", ({ entries, revision, updated, ...found }) => {
      const by = found.by === NOBODY ? "" : ` by ${printable(found.by)}`;
      const head = `# ${found.name}: revision ${revision}, changed ${when(updated)}${by}\n`;
      return head + entries.map((entry) => `${printable(entry)}\n`).join("");
    });
  calendars
    .verb("rm", "delete a calendar that no task names")
    .calls("calendars.delete", (_, { name }) => `deleted ${name}\n`, {
      also: ({ name }) => ({ name, deleted: true }),
    });
};

type Put = AnswerTo<"calendars.put">;
type Moved = NonNullable<Put["moved"]>;

function movedText(name: string, outcome: Put["outcome"], { count, sample }: Moved, out: Output): string {
  const tasks = counted(count, "task gets", "tasks get");
  return `would be ${outcome}: ${name}; ${tasks} another next time\n${count === 0 ? "" : table(MOVED, sample, out)}`;
}

const MOVED: Column<Moved["sample"][number]>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: "queue" },
  { title: "NEXT NOW", value: ({ before }, { when }) => when(before) },
  { title: "THEN", value: ({ after }, { when }) => when(after) },
];

const COLUMNS: Column<AnswerTo<"calendars.list">["calendars"][number]>[] = [
  { title: "NAME", value: "name" },
  { title: "ENTRIES", right: true, value: "entries" },
  { title: "TASKS", right: true, value: "tasks" },
  { title: "REVISION", right: true, value: "revision" },
  { title: "UPDATED", value: ({ updated }, { when }) => when(updated) },
];
