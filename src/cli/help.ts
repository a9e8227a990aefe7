import { VERSION } from "../model/version.ts";
import { placeholderOf } from "./argv.ts";
import { type CommandEntry, commonFlags, type Flag, flagsOf, GLOBAL_FLAGS } from "./command.ts";
import { commandsUnder, findCommand } from "./command-table.ts";
import type { Host } from "./host.ts";
import { type Style, styleFor } from "./terminal/style.ts";
import { pad, textWidth, wrapText } from "./terminal/width.ts";

/** Returns the help for a command, for the commands of a noun, or for all commands. */
export function helpText(table: readonly CommandEntry[], path: readonly string[], host: Host): string {
  const page = pageOf(host);
  const { command } = findCommand(table, path);
  const below = commandsUnder(table, path).filter((candidate) => candidate.path.length > path.length);
  if (!command) return overview(table, path, page);
  return [commandHelp(command, page), ...(below.length > 0 ? [commandList(below, page)] : [])].join("\n\n");
}

/** Returns the same as data, for --json. */
export function helpData(table: readonly CommandEntry[], path: readonly string[]): unknown {
  return {
    version: VERSION,
    commands: commandsUnder(table, path).map((command) => ({
      command: `cairn ${command.path.join(" ")}`,
      summary: command.summary,
      positional: command.positional,
      flags: flagsOf(command).map(({ name, kind, description, required = false, choices, fallback }) => ({
        name: `--${name}`,
        kind,
        description,
        required,
        choices,
        default: fallback,
      })),
      examples: command.examples,
    })),
  };
}

interface Page {
  readonly style: Style;
  readonly width: number;
}

const pageOf = (host: Host): Page => ({ style: styleFor(host.stdout, host.env), width: Math.min(host.stdout.columns ?? 100, 120) });

function overview(table: readonly CommandEntry[], path: readonly string[], page: Page): string {
  const { style } = page;
  const under = commandsUnder(table, path);
  if (path.length > 0)
    return [
      `${style.bold("Usage")}  cairn ${path.join(" ")} <command> [flags]`,
      commandList(under, page),
      style.dim(`More: cairn ${path.join(" ")} <command> --help`),
    ].join("\n\n");
  return [
    `${style.bold("cairn")} ${VERSION}: durable memory for AI agents.`,
    `${style.bold("First steps")}\n${definitions(FIRST_STEPS, page)}`,
    `${style.bold("Groups")}\n${definitions(GROUPS, page)}`,
    style.dim("More: cairn <noun> <verb> --help, cairn help all"),
  ].join("\n\n");
}

/** What people do first, one line each: the overview fits on a small terminal. */
const FIRST_STEPS: readonly (readonly [line: string, about: string])[] = [
  ['cairn save "done X, next Y"', "Save a checkpoint"],
  ["cairn ls", "List checkpoints"],
  ['cairn search "login bug"', "Find checkpoints"],
  ["cairn resume", "Continue from the newest one"],
  ["cairn code index --wait", "Index this project's code"],
  ['cairn code search "retry"', "Find code"],
  ["cairn init", "Connect an agent over MCP"],
  ["cairn doctor", "Check the installation"],
];

const GROUPS: readonly (readonly [group: string, nouns: string])[] = [
  ["Memory", "checkpoint, knowledge, session, review, project; save, ls, search, resume, tags, projects"],
  ["Code", "code, embeddings"],
  ["Workflows", "run, system"],
  ["Servers", "mcp, serve, ui, token, key"],
  ["Data", "stats, doctor, backup, restore, deleted, database, migrate"],
  ["Set-up", "init, adopt, hook, config, trust, completion, tour"],
];

/** Returns every command with its summary, and the global flags. */
export function allCommandsText(table: readonly CommandEntry[], host: Host): string {
  const page = pageOf(host);
  return [
    `${page.style.bold("Usage")}  cairn <noun> <verb> [flags]`,
    commandList(table, page),
    flagList("Global flags", GLOBAL_FLAGS, [], page),
  ].join("\n\n");
}

function commandList(list: readonly CommandEntry[], page: Page): string {
  return `${page.style.bold("Commands")}\n${definitions(
    list.map((command) => [`cairn ${command.path.join(" ")}`, command.summary]),
    page,
  )}`;
}

function commandHelp(command: CommandEntry, page: Page): string {
  const { style } = page;
  const free = command.positional.map((name) => {
    const flag = command.flags.find((one) => one.name === name)!;
    const shown = flag.kind === "list" ? `<${name}>…` : `<${name}>`;
    return flag.required ? shown : `[${shown}]`;
  });
  return [
    wrapText(command.summary, page.width).join("\n"),
    ...(command.description ? [wrapText(command.description, page.width).join("\n")] : []),
    ...(command.aliasOf ? [`An alias of: cairn ${command.aliasOf.join(" ")}`] : []),
    `${style.bold("Usage")}  ${wrapText(["cairn", ...command.path, ...free, "[flags]"].join(" "), page.width - 7).join("\n       ")}`,
    ...(command.flags.length > 0 ? [flagList("Flags", command.flags, command.positional, page)] : []),
    flagList("Common flags", commonFlags(command), [], page),
    ...(command.examples.length > 0 ? [`${style.bold("Examples")}\n${command.examples.map((line) => `  ${line}`).join("\n")}`] : []),
  ].join("\n\n");
}

function flagList(title: string, flags: readonly Flag[], positional: readonly string[], page: Page): string {
  return `${page.style.bold(title)}\n${definitions(
    flags.map((flag) => [flagSyntax(flag, positional.includes(flag.name)), flagNotes(flag)]),
    page,
  )}`;
}

function flagSyntax(flag: Flag, positional: boolean): string {
  const value = valueSyntax(flag);
  const name = positional ? `<${flag.name}>, --${flag.name}` : `${flag.short ? `-${flag.short}, ` : ""}--${flag.name}`;
  return value ? `${name} <${value}>` : name;
}

/** Returns the name of a flag's value. Many choices are listed in the notes, where they can be wrapped. */
function valueSyntax(flag: Flag): string {
  const value = placeholderOf(flag);
  return value.includes("|") && value.length > MAX_TERM_CELLS ? "text" : value;
}

function flagNotes(flag: Flag): string {
  const notes = [
    flag.required ? "required" : "",
    flag.choices && !valueSyntax(flag).includes("|") ? `one of ${flag.choices.join(", ")}` : "",
    flag.kind === "list" || flag.kind === "map" ? "may be repeated" : "",
    flag.fallback !== undefined && flag.fallback !== false ? `default ${JSON.stringify(flag.fallback)}` : "",
  ].filter(Boolean);
  return [flag.description, notes.length > 0 ? `(${notes.join("; ")})` : ""].filter(Boolean).join(" ");
}

const MIN_TERM_CELLS = 12;
const MAX_TERM_CELLS = 36;
const MEANING_CELLS = 28;

/** Formats terms on the left and their wrapped meanings on the right. */
function definitions(pairs: readonly (readonly [term: string, meaning: string])[], { style, width }: Page): string {
  // A longer term has a line of its own, so that the meanings keep their width.
  const widest = Math.max(MIN_TERM_CELLS, Math.min(MAX_TERM_CELLS, width - MEANING_CELLS - 4));
  const margin = Math.max(0, ...pairs.map(([term]) => textWidth(term)).filter((cells) => cells <= widest)) + 4;
  return pairs
    .flatMap(([term, meaning]) => {
      const lines = wrapText(meaning, width - margin);
      const head = `  ${term}`;
      const fits = textWidth(head) <= margin - 2;
      const [first = "", ...rest] = lines;
      const start = fits ? [`${style.cyan(pad(head, margin))}${first}`] : [style.cyan(head), `${" ".repeat(margin)}${first}`];
      return [...start, ...rest.map((line) => `${" ".repeat(margin)}${line}`)].map((line) => line.trimEnd());
    })
    .join("\n");
}
