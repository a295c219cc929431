import { Argument, type Command } from "commander";
import type { Register } from "../command.js";

const SHELLS = { bash, zsh, fish };

export const registerCompletion: Register = (program, out) => {
  program
    .verb(
      "completion",
      "a script that completes commands and options in a shell",
      "Prints a script that completes commands and options. bash: source <(carillon completion bash) in ~/.bashrc; " +
        "zsh: source <(carillon completion zsh) in ~/.zshrc; fish: carillon completion fish > ~/.config/fish/completions/carillon.fish.",
    )
    .addArgument(new Argument("<shell>").choices(Object.keys(SHELLS)))
    .action(async (shell: keyof typeof SHELLS, _: unknown, command: Command) => {
      const script = SHELLS[shell](program);
      const json = command.optsWithGlobals()["json"] === true;
      await (json ? out.json({ shell, script }) : out.write(script));
    });
};

/** A command with its full name, such as `queues pause`. */
interface Entry {
  readonly name: string;
  readonly command: Command;
}

/** The commands, those within others before these. */
function entries(command: Command, path = ""): Entry[] {
  return command.commands.flatMap((one) => {
    const name = `${path}${one.name()}`;
    return [...entries(one, `${name} `), { name, command: one }];
  });
}

/** Words that may follow a command: those within it, and options. */
function wordsOf(command: Command, program: Command): string[] {
  const options = [...command.options, ...program.options].flatMap(({ long }) => (long ? [long] : []));
  const within = command.commands.map((one) => one.name());
  return [...within, ...(command === program ? ["help"] : []), ...new Set([...options, "--help"])];
}

/** The arms of a `case` over the first two words that are not options. Names have no characters that a shell would read. */
function cases(program: Command): string {
  const arms = entries(program).map(({ name, command }) => {
    const pattern = name.includes(" ") ? `"${name}"` : `"${name} "*`;
    return `    ${pattern}) words="${wordsOf(command, program).join(" ")}" ;;\n`;
  });
  return `${arms.join("")}    *) words="${wordsOf(program, program).join(" ")}" ;;\n`;
}

function bash(program: Command): string {
  return `_carillon() {
  local word words given=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] || given+=("$word"); done
  case "\${given[0]} \${given[1]}" in
${cases(program)}  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _carillon carillon
`;
}

function zsh(program: Command): string {
  return `#compdef carillon
_carillon() {
  local list
  local -a given=(\${\${words[2,CURRENT-1]}:#-*})
  case "\${given[1]} \${given[2]}" in
${cases(program).replaceAll("words=", "list=")}  esac
  compadd -- \${=list}
  _files
}
compdef _carillon carillon
`;
}

function fish(program: Command): string {
  const quoted = (text: string) => `'${text.replace(/['\\]/g, "\\$&")}'`;
  const seen = (name: string) =>
    name
      .split(" ")
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join("; and ");
  const lines = [...entries(program), { name: "", command: program }].flatMap(({ name, command }) => {
    const inner = command.commands.map((one) => one.name());
    const first = name === "" ? "__fish_use_subcommand" : seen(name);
    const free =
      inner.length > 0 && name !== "" ? `; and not __fish_seen_subcommand_from ${inner.join(" ")}` : "";
    return [
      ...command.commands.map(
        (one) =>
          `complete -c carillon -n ${quoted(first + free)} -f -a ${one.name()} -d ${quoted(one.summary())}`,
      ),
      ...command.options.flatMap(({ long, required, description }) => {
        const when = name === "" ? "" : ` -n ${quoted(first)}`;
        return long
          ? [
              `complete -c carillon${when} -l ${long.slice(2)}${required ? " -r" : ""} -d ${quoted(description)}`,
            ]
          : [];
      }),
    ];
  });
  return `${lines.join("\n")}\n`;
}
