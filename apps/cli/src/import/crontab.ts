import { type Imported, Notes, settle } from "@carillon/ops/internal";
import type { Source, SourceOptions, Task } from "./source.js";

const VARIABLE = /^\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z_]\w*))\s*=\s*(.*?)\s*$/;
const FIELDS = /^\s*-?(@\w+|(?:\S+\s+){4}\S+)\s+(.*)$/s;
/** `flock`, alone or after `cd DIR &&`. */
const FLOCK =
  /^((?:cd\s+\S+\s*&&\s*)?)(?:\S*\/)?flock\s+((?:-\S+\s+)*?)((?:-w|--timeout)[= ]?\d+\s+)?((?:-\S+\s+)*)([^\s-]\S*)\s+(.*)$/s;
/** Words before the program that a line is about. */
const BEFORE = [
  /^cd\s+\S+\s*(?:&&|;)\s*/,
  /^(?:\[.*?\]|test\s.*?)\s*(?:&&|\|\|)\s*/,
  /^[("'{]\s*/,
  /^\w+=\S*\s+/,
  /^(?:\S*\/)?(?:sudo|env|nice|ionice|exec|timeout|chronic|bash|sh|php|python[\d.]*|node|ruby|perl)\s+/,
  /^(?:-[un]\s+\S+|-\S+|\d+[smh]?)\s+/,
];

interface Around {
  readonly env: Record<string, string>;
  timezone?: string | undefined;
  mailto?: string | undefined;
}

/** Lines of a crontab as tasks of the type `shell`. */
export const crontab: Source = (text, options) => {
  const around: Around = { env: {} };
  let comment: string | undefined;
  const found: Imported[] = [];
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const variable = VARIABLE.exec(line);
    if (/^\s*#/.test(line)) {
      comment = line.replace(/^[\s#]+/, "").trim();
    } else if (variable) {
      assign(
        around,
        (variable[1] ?? variable[2] ?? variable[3])!,
        variable[4]!.replace(/^(["'])(.*)\1$/, "$2"),
      );
    } else if (line.trim() !== "") {
      found.push(entry(`line ${i + 1}`, line, around, comment, options));
    }
    if (!/^\s*#/.test(line)) comment = undefined;
  }
  return settle(found);
};

function assign(around: Around, name: string, value: string): void {
  if (name === "CRON_TZ") around.timezone = value;
  else if (name === "MAILTO") around.mailto = value;
  else around.env[name] = value;
}

function entry(
  from: string,
  line: string,
  around: Around,
  comment: string | undefined,
  options: SourceOptions,
): Imported {
  const notes = new Notes();
  const refuse = (text: string): Imported => ({
    from,
    notes: [{ code: "REFUSED", text: `${text}: ${line.trim()}` }],
  });
  const [, when = "", rest = ""] = FIELDS.exec(line) ?? [];
  if (when === "") return refuse("This is not a line of a crontab");
  if (when === "@reboot")
    return refuse("A start of the machine is not a time; run it when the process starts");
  const [, user, afterUser = ""] = options.system
    ? (/^(\S+)\s+(.*)$/s.exec(rest) ?? [])
    : [undefined, undefined, rest];
  const { command, stdin } = cut(afterUser.trim());
  if (command === "") return refuse("It has no command");
  const { overlap, bare } = unlock(command, notes);
  const cron = when.replace(/\s+/g, " ");
  if (cron.includes("~"))
    notes.add("RANDOM", "cronie chooses a random value at each start; H is one value, of the task's own.");
  const task: Task = {
    id: notes.name("id", nameOf(bare)),
    type: "shell",
    queue: options.queue,
    schedule: { cron: cron.replace(/(\d*)~(\d*)/g, hashed), timezone: notes.zone(around.timezone, options) },
    payload: {
      command: bare,
      ...(stdin !== undefined && { stdin }),
      ...(user && { user }),
      ...(Object.keys(around.env).length > 0 && { env: { ...around.env } }),
    },
    overlap,
    ...(comment && { description: comment.slice(0, 1_000) }),
    ...alertsOf(around.mailto, notes),
  };
  return { from, task, notes: notes.list.filter(({ code }) => code !== "RENAMED") };
}

/** An unescaped `%` ends the command; further ones are line ends of its input. */
function cut(text: string): { command: string; stdin: string | undefined } {
  const [command = "", ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll("\\%", "%"));
  return { command: command.trim(), stdin: lines.length > 0 ? lines.join("\n") : undefined };
}

/** cron starts each run; `flock` decides otherwise. */
function unlock(command: string, notes: Notes): { overlap: Task["overlap"]; bare: string } {
  const [, before = "", first = "", wait, more = "", lock, rest = ""] = FLOCK.exec(command) ?? [];
  if (lock === undefined) return { overlap: "allow", bare: command };
  const flags = first + more;
  if (/-\w*s|--shared/.test(flags)) return { overlap: "allow", bare: command };
  notes.add(
    "FLOCK",
    `The lock ${lock} became the overlap policy. If other lines hold it too, put flock back.`,
  );
  const overlap = /-\w*n|--non/.test(flags) ? "skip" : wait ? "queue-one" : "queue-all";
  return { overlap, bare: before + rest.replace(/^(?:-c|--command)\s+(["'])(.*)\1/s, "$2") };
}

/** The program's name, without folder and ending. */
function nameOf(command: string): string {
  let rest = command;
  for (let before = BEFORE[0]; before; before = BEFORE.find((one) => one.test(rest)))
    rest = rest.replace(before, "");
  const [word = ""] = /^[^\s;&|<>]+/.exec(rest) ?? [];
  return (
    word
      .split("/")
      .filter(Boolean)
      .pop()
      ?.replace(/\.(?:sh|py|rb|php|pl|js|mjs|ts)$/, "") || "command"
  );
}

/** `10~40` as `H(10-40)`. */
function hashed(_: string, low: string, high: string): string {
  return low && high ? `H(${low}-${high})` : "H";
}

function alertsOf(mailto: string | undefined, notes: Notes): Pick<Task, "alerts"> {
  const emails = (mailto ?? "").split(",").map((one) => one.trim());
  const usable = emails.filter((one) => /^[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}$/.test(one)).slice(0, 8);
  if (usable.length < emails.filter(Boolean).length)
    notes.add("DROPPED", `MAILTO=${mailto} names a local user; give an address in alerts.`);
  if (usable.length === 0) return {};
  notes.add(
    "MAILTO",
    "cron mails all output; the alert mails failures only. Nodes need a mail server: docs/policies/alerts.md.",
  );
  return { alerts: usable.map((email) => ({ email, on: ["failed", "crashed"] })) };
}
