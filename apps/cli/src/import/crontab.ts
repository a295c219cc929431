import { fieldTable, type Imported, Notes, readFields, settle } from "@carillon/ops/internal";
import type { Source, SourceOptions, Task } from "./source.js";

const VARIABLE = /^\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z_]\w*))\s*=\s*(.*?)\s*$/;
const FIELDS = /^\s*-?(@\w+|(?:\S+\s+){4}\S+)\s+(.*)$/s;
/** `flock`, alone or after `cd DIR &&`. */
const FLOCK = /^((?:cd\s+\S+\s*&&\s*)?)(?:\S*\/)?flock\s+(.*)$/s;
/** Options of flock by their letters; `w` and `E` take a value. */
const FLOCK_OPTIONS = {
  ...{ shared: "s", exclusive: "x", nonblock: "n", nb: "n", wait: "w", timeout: "w", close: "o" },
  ...{ "conflict-exit-code": "E", "no-fork": "F", verbose: "v" },
};
/** The first word of a shell command, with its quotes. */
const WORD = /^\s*((?:'[^']*'|"[^"]*"|\\.|[^\s'"\\;&|<>()`])+)/;
/** A command in one text, for `flock -c` or for `sh -c`, and the rest of the line. */
const SHELL_TEXT = /^(?:-c|--command|(?:\S*\/)?sh\s+-c)\s+((?:'[^']*'|"[^"]*"|\\.|[\w./:@=+,-])+)(.*)$/s;
/** The text of a comment that is a heading of columns, a drawing, or a disabled line. */
const NO_DESCRIPTION = /^(?:m(?:in\w*)?s?[\s|]+h|[|.+`'-]|(?:[\d*][\d*,/~-]*\s+){2}|@\w+\s+\S)/i;
/** Words before the program that a line is about. */
const BEFORE = [
  /^cd\s+\S+\s*(?:&&|;)\s*/,
  /^(?:\[.*?\]|test\s.*?)\s*(?:&&|\|\|)\s*/,
  /^[("'{]\s*/,
  /^\w+=\S*\s+/,
  /^(?:\S*\/)?(?:sudo|env|nice|ionice|exec|timeout|chronic|bash|sh|php|python[\d.]*|node|ruby|perl)\s+/,
  /^(?:-[un]\s+\S+|-\S+|\d+[smh]?|\$\S+)\s+/,
];

/** Variables that mean something to cron itself; all others are for the command. */
const VARIABLES = fieldTable(`
  kept: CRON_TZ RANDOM_DELAY MAILTO
  dropped: SHELL = /bin/sh -- the handler chooses the shell.
  dropped: MAILFROM CONTENT_TYPE CONTENT_TRANSFER_ENCODING -- an alert has its own.`);

interface Around {
  readonly own: Record<string, string>;
  readonly env: Record<string, string>;
}

/** Lines of a crontab as tasks of the type `shell`. */
export const crontab: Source = (text, options) => {
  const around: Around = { own: {}, env: {} };
  let comment: string | undefined;
  const found: Imported[] = [];
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const variable = VARIABLE.exec(line);
    if (/^\s*#/.test(line)) {
      const text = line.replace(/^[\s#]+/, "").trim();
      comment = NO_DESCRIPTION.test(text) || VARIABLE.test(text) ? undefined : text;
    } else if (variable) {
      const name = (variable[1] ?? variable[2] ?? variable[3])!;
      const place = VARIABLES.rules.has(name) ? around.own : around.env;
      place[name] = variable[4]!.replace(/^(["'])(.*)\1$/, "$2");
    } else if (line.trim() !== "") {
      found.push(entry(`line ${i + 1}`, line, around, comment, options));
    }
    if (!/^\s*#/.test(line)) comment = undefined;
  }
  return settle(found);
};

function entry(
  from: string,
  line: string,
  around: Around,
  comment: string | undefined,
  options: SourceOptions,
): Imported {
  const notes = new Notes();
  readFields(around.own, VARIABLES, notes);
  const delay = Number(around.own["RANDOM_DELAY"] ?? 0);
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
  // OpenBSD: no mail, no log, one at a time.
  const [, flags = "", given = ""] = /^((?:-[nqs]+\s+)*)(.*)$/s.exec(afterUser.trim()) ?? [];
  const { command, stdin } = cut(given);
  if (command === "") return refuse("It has no command");
  const { overlap, bare } = unlock(command, notes);
  const cron = FREEBSD[when] ?? when.replace(/\s+/g, " ");
  if (cron.includes("~"))
    notes.add("RANDOM", "cronie chooses a random value at each start; H is one value, of the task's own.");
  if (around.own["CRON_TZ"])
    notes.add(
      "CRON_TZ",
      "cronie reads CRON_TZ; Debian's own cron does not: there remove it, and give --timezone.",
    );
  const task: Task = {
    id: notes.name("id", nameOf(bare)),
    type: "shell",
    queue: options.queue,
    schedule: {
      cron: cron.split(" ").map(hashed).join(" "),
      timezone: notes.zone(around.own["CRON_TZ"], options),
      ...(delay !== 0 && { jitter: `${delay}m` }),
    },
    payload: {
      command: bare,
      ...(stdin !== undefined && { stdin }),
      ...(user && { user }),
      ...(Object.keys(around.env).length > 0 && { env: { ...around.env } }),
    },
    overlap: flags.includes("s") ? "skip" : overlap,
    ...(comment && { description: comment.slice(0, 1_000) }),
    ...alertsOf(around.own["MAILTO"], notes),
  };
  return { from, task, notes: notes.list.filter(({ code }) => code !== "RENAMED") };
}

/** An unescaped `%` ends the command; further ones are line ends of its input. */
function cut(text: string): { command: string; stdin: string | undefined } {
  const [command = "", ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll("\\%", "%"));
  return { command: command.trim(), stdin: lines.length > 0 ? lines.join("\n") : undefined };
}

/** Makes the lock of a command its overlap policy. A lock that is no such policy stays in the command. */
function unlock(command: string, notes: Notes): { overlap: Task["overlap"]; bare: string } {
  const [, before = "", text] = FLOCK.exec(command) ?? [];
  const found = text === undefined ? undefined : readFlock(text);
  if (typeof found === "string") notes.add("FLOCK", `flock stays in the command: ${found}.`);
  if (!found || typeof found === "string") return { overlap: "allow", bare: command };
  notes.add(
    "FLOCK",
    `The lock ${found.lock} became the overlap policy. If other lines hold it too, put flock back.`,
  );
  return { overlap: found.overlap, bare: before + found.bare };
}

/** The command under a lock, or the reason why the lock is no overlap policy. */
function readFlock(text: string): { overlap: Task["overlap"]; lock: string; bare: string } | string {
  let rest = text;
  const next = () => {
    const [all = "", word = ""] = WORD.exec(rest) ?? [];
    rest = rest.slice(all.length);
    return word;
  };
  let overlap: Task["overlap"] = "queue-all";
  let lock = next();
  for (; lock.startsWith("-"); lock = next()) {
    const [, long, given] = /^--([\w-]+)(?:=(.*))?$/.exec(lock) ?? [];
    const known = Object.entries(FLOCK_OPTIONS).find(([name]) => long !== undefined && name.startsWith(long));
    const [, letters = "", last, value] =
      /^-([nxeoFv]*)([wE]?)(.*)$/.exec(known ? `-${known[1]}${given ?? ""}` : lock) ?? [];
    const taken = last ? value || next() : value;
    if (letters.includes("n")) overlap = "skip";
    if (last === "w" && overlap !== "skip") overlap = Number(taken) === 0 ? "skip" : "queue-one";
    if (last ? Number.isNaN(Number.parseFloat(taken!)) : taken !== "")
      return `its option ${lock} is not an overlap policy`;
  }
  if (lock === "" || /^\d+$/.test(lock) || rest.trim() === "") return "it holds no file for one command";
  const command = rest.trim();
  // The shell runs what follows without the lock.
  if (/;|&&|\|\||(?<![>&<])&(?![>&])/.test(command.replace(/'[^']*'|"[^"]*"|\\./g, "")))
    return "only a part of the line is under the lock";
  const [, word = "", tail = ""] = SHELL_TEXT.exec(command) ?? [];
  if (word === "") return { overlap, lock, bare: command };
  const bare = tail.trim() !== "" || /^".*[$`\\]/s.test(word) ? `sh -c ${word}${tail}` : unquoted(word);
  return { overlap, lock, bare };
}

const unquoted = (word: string) => word.replace(/'([^']*)'|"([^"]*)"|\\(.)/gs, "$1$2$3");

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

const FREEBSD: Readonly<Record<string, string>> = {
  ...{ "@every_minute": "* * * * *", "@every_second": "* * * * * *" },
};
const LIMITS = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;

/** `10~40` as `H(10-40)`; a limit that is left out is that of the field. */
function hashed(field: string, i: number): string {
  const [least, most] = LIMITS[i] ?? [0, 59];
  return field.replace(/(\d*)~(\d*)/g, (_, low: string, high: string) =>
    low || high ? `H(${low || least}-${high || most})` : "H",
  );
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
