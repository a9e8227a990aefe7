import { usage } from "./argv.ts";
import { type Command, type CommandEntry, type Flag, flagsOf, GLOBAL_FLAGS } from "./command.ts";
import { print, printJson } from "./host.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** `cairn completion bash|zsh|fish`: prints a script that is generated from the list of commands. */
export const completionCommand: Command = {
  path: ["completion"],
  summary: "Print a script that completes cairn's commands in your shell.",
  flags: [{ name: "shell", kind: "text", description: "The shell.", required: true, choices: SHELLS }],
  positional: ["shell"],
  examples: [
    'eval "$(cairn completion bash)"',
    "cairn completion zsh > ~/.zfunc/_cairn",
    "cairn completion fish > ~/.config/fish/completions/cairn.fish",
  ],
  usesProject: false,
  async run({ host, json, values, table }) {
    const shell = SHELLS.find((one) => one === values.shell);
    if (!shell) throw usage(`<shell>: must be one of ${SHELLS.join(", ")}.`);
    const script = { bash, zsh, fish }[shell](table);
    if (json) printJson(host, { shell, script });
    else print(host, script);
  },
};

/** Returns what may follow each path: the next words of longer commands, and the flags of the command. */
interface Stop {
  readonly path: string;
  readonly words: readonly { readonly word: string; readonly about: string }[];
  readonly flags: readonly Flag[];
}

function stops(commands: readonly CommandEntry[]): Stop[] {
  const paths = new Set(["", ...commands.flatMap(({ path }) => path.map((_, index) => path.slice(0, index + 1).join(" ")))]);
  return [...paths].map((path) => {
    const depth = path === "" ? 0 : path.split(" ").length;
    const under = commands.filter((command) => path === "" || command.path.join(" ").startsWith(`${path} `));
    const command = commands.find((candidate) => candidate.path.join(" ") === path);
    const words = new Map(under.map(({ path: full, summary }) => [full[depth]!, full.length === depth + 1 ? summary : `${full[depth]} …`]));
    return { path, words: [...words].map(([word, about]) => ({ word, about })), flags: command ? flagsOf(command) : GLOBAL_FLAGS };
  });
}

const positionalChoices = (command: CommandEntry) =>
  command.positional.flatMap((name) => command.flags.find((flag) => flag.name === name)?.choices ?? []);

function bash(commands: readonly CommandEntry[]): string {
  const all = stops(commands);
  const cases = all.map(({ path, words, flags }) => {
    const command = commands.find((candidate) => candidate.path.join(" ") === path);
    const options = [
      ...words.map(({ word }) => word),
      ...(command ? positionalChoices(command) : []),
      ...flags.map(({ name }) => `--${name}`),
    ];
    return `    "${path}") words="${options.join(" ")}" ;;`;
  });
  const choices = all.flatMap(({ path, flags }) =>
    flags
      .filter((flag) => flag.choices)
      .map((flag) => `    "${path} --${flag.name}") COMPREPLY=($(compgen -W "${flag.choices!.join(" ")}" -- "$cur")); return ;;`),
  );
  const folders = "--project|--data-dir";
  return `# bash completion for cairn
_cairn() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$path\${path:+ }$word" in
      ${all
        .filter(({ path }) => path)
        .map(({ path }) => `"${path}"`)
        .join("|")}) path="$path\${path:+ }$word" ;;
      *) break ;;
    esac
  done
  case "$prev" in
    ${folders}) COMPREPLY=($(compgen -d -- "$cur")); return ;;
  esac
  case "$path $prev" in
${choices.join("\n")}
    *) ;;
  esac
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _cairn cairn`;
}

function zsh(commands: readonly CommandEntry[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const cases = stops(commands).map(({ path, words, flags }) => {
    const command = commands.find((candidate) => candidate.path.join(" ") === path);
    const entries = [
      ...words.map(({ word, about }) => `${word}:${about}`),
      ...(command ? positionalChoices(command).map((choice) => `${choice}:${choice}`) : []),
      ...flags.map(({ name, description }) => `--${name}:${description}`),
    ];
    return `    "${path}") entries=(${entries.map((entry) => quoted(entry.replaceAll("\n", " "))).join(" ")}) ;;`;
  });
  return `#compdef cairn
_cairn() {
  local -a entries
  local path_so_far="" next word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    next="$path_so_far\${path_so_far:+ }$word"
    case "$next" in
      ${stops(commands)
        .filter(({ path }) => path)
        .map(({ path }) => `"${path}"`)
        .join("|")}) path_so_far="$next" ;;
      *) break ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
    --project|--data-dir) _files -/; return ;;
  esac
  case "$path_so_far" in
${cases.join("\n")}
  esac
  _describe 'cairn' entries
}
if [ "$funcstack[1]" = "_cairn" ]; then _cairn "$@"; else compdef _cairn cairn; fi`;
}

function fish(commands: readonly CommandEntry[]): string {
  const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = stops(commands).flatMap(({ path, words, flags }) => {
    const command = commands.find((candidate) => candidate.path.join(" ") === path);
    const here = `-n ${quoted(`__cairn_at ${path}`.trim())}`;
    return [
      ...words.map(({ word, about }) => `complete -c cairn ${here} -f -a ${word} -d ${quoted(about)}`),
      ...(command ? positionalChoices(command).map((choice) => `complete -c cairn ${here} -f -a ${choice}`) : []),
      ...flags.map(({ name, description, kind, choices }) => {
        const value = kind === "switch" ? "" : choices ? ` -x -a ${quoted(choices.join(" "))}` : " -r";
        return `complete -c cairn ${here} -l ${name}${value} -d ${quoted(description)}`;
      }),
    ];
  });
  // A quoted list is joined by spaces, so the first word follows a space.
  const paths = stops(commands)
    .filter(({ path }) => path)
    .map(({ path }) => quoted(path.includes(" ") ? path : ` ${path}`))
    .join(" ");
  return `# fish completion for cairn
function __cairn_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- "$path $word" ${paths}; or break
    set -a path $word
  end
  test "$path" = "$argv"
end
${lines.join("\n")}`;
}
