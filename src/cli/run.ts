import { asCairnError, CairnError, WIRE_NAME } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import { nearest } from "../text/nearest.ts";
import { parseArgv, usage } from "./argv.ts";
import { type CommandEntry, flagsOf, GLOBAL_FLAGS, PROJECT_FLAG } from "./command.ts";
import { commandTable, findCommand, wordsAfter } from "./command-table.ts";
import { EXIT_CODE } from "./exit-code.ts";
import { type Host, print, printJson } from "./host.ts";
import { nearMiss } from "./near-miss.ts";
import { escapeControls, styleFor } from "./terminal/style.ts";

/** Runs one command line and returns its exit code. Never throws. */
export async function runCli(argv: readonly string[], host: Host): Promise<number> {
  const beforeEnd = argv.includes("--") ? argv.slice(0, argv.indexOf("--")) : argv;
  const json = beforeEnd.includes("--json");
  try {
    return await dispatch(argv, json, host);
  } catch (error) {
    const failure = host.signal.aborted ? cancelled(error) : asCairnError(error);
    report(failure, json, host);
    return EXIT_CODE[failure.code];
  }
}

/** Returns the error of Ctrl-C. A command may say what it has kept. */
function cancelled(error: unknown): CairnError {
  const says = error instanceof CairnError && error.code === "cancelled" && error.details?.kept !== undefined;
  return says ? error : new CairnError("cancelled", "Cancelled.", { cause: error });
}

async function dispatch(given: readonly string[], json: boolean, host: Host): Promise<number> {
  const table = await commandTable();
  const argv = commandFirst(table, given);
  const asked = (...names: readonly string[]) => {
    const end = argv.indexOf("--");
    return (end === -1 ? argv : argv.slice(0, end)).some((argument) => names.includes(argument));
  };
  if (argv[0] === "help" || asked("--help", "-h") || argv.length === 0) {
    const words = argv.slice(argv[0] === "help" ? 1 : 0).filter((argument) => !argument.startsWith("-"));
    await showHelp(table, words, argv[0] === "help", json, host);
    return 0;
  }
  const { command, path, rest } = findCommand(table, argv);
  if (!command) {
    if (asked("--version", "-V")) return showVersion(json, host);
    throw unknownCommand(table, path, rest);
  }
  const values = parseArgv(rest, flagsOf(command), command.positional);
  if (values.version) return showVersion(json, host);
  // Help and completion load none of this.
  const { runCommand } = await import("./run-command.ts");
  return runCommand(command, { host, table, values, runLine: runCli });
}

function showVersion(json: boolean, host: Host): number {
  if (json) printJson(host, { version: VERSION });
  else print(host, VERSION);
  return 0;
}

/** Moves the command before global flags: `cairn --json checkpoint list` is `cairn checkpoint list --json`. */
function commandFirst(table: readonly CommandEntry[], argv: readonly string[]): readonly string[] {
  const flags = new Map([...GLOBAL_FLAGS, PROJECT_FLAG].map((flag) => [`--${flag.name}`, flag]));
  let start = 0;
  while (start < argv.length) {
    const argument = argv[start]!;
    const flag = flags.get(argument.split("=")[0]!);
    if (!flag) break;
    start += flag.kind === "switch" || argument.includes("=") ? 1 : 2;
  }
  const { path, rest } = findCommand(table, argv.slice(start));
  return path.length === 0 ? argv : [...path, ...argv.slice(0, start), ...rest];
}

async function showHelp(
  table: readonly CommandEntry[],
  words: readonly string[],
  strict: boolean,
  json: boolean,
  host: Host,
): Promise<void> {
  if (words[0] === "all" && words.length === 1 && strict) return print(host, (await import("./help.ts")).allCommandsText(table, host));
  const { command, path, rest } = findCommand(table, words);
  // Values may follow a command; only known words may follow a noun or `help`.
  if (rest.length > 0 && (strict || !command)) throw unknownCommand(table, path, rest);
  const { helpData, helpText } = await import("./help.ts");
  if (json) printJson(host, helpData(table, path));
  else print(host, helpText(table, path, host));
}

function unknownCommand(table: readonly CommandEntry[], path: readonly string[], rest: readonly string[]): CairnError {
  const known = wordsAfter(table, path);
  const [word] = rest;
  const so = ["cairn", ...path].join(" ");
  if (word === undefined) return usage(`${so} needs one of: ${known.join(", ")}. See: ${so} --help`);
  if (word.startsWith("-")) {
    const names = [...GLOBAL_FLAGS, PROJECT_FLAG].map((flag) => flag.name);
    const name = word.slice(2).split("=")[0]!;
    const hint = names.includes(name) ? undefined : nearest(name, names);
    const shown = JSON.stringify(word.slice(0, 60));
    return usage(`${hint ? `Unknown flag ${shown}. Did you mean --${hint}?` : `${so} needs a command before ${shown}.`} See: ${so} --help`);
  }
  const near = nearest(word, path.length === 0 ? [...known, "help"] : known);
  const hint = nearMiss(path, word, known) ?? (near ? `Did you mean "${[...path, near].join(" ")}"?` : undefined);
  return usage(`Unknown command ${JSON.stringify([...path, word.slice(0, 60)].join(" "))}.${hint ? ` ${hint}` : ""} See: ${so} --help`);
}

/** Prints an error on stderr, so that stdout has the answer or nothing. */
function report(error: CairnError, json: boolean, host: Host): void {
  if (json) {
    const { code, message, details, retryAfterMs } = error;
    host.stderr.write(`${JSON.stringify({ error: { code: WIRE_NAME[code], message, details, retry_after_ms: retryAfterMs } })}\n`);
    return;
  }
  const style = styleFor(host.stderr, host.env);
  host.stderr.write(`${style.red("cairn:")} ${escapeControls(error.message)}\n`);
  if (error.code === "internal" && error.cause instanceof Error)
    host.stderr.write(`${style.dim(escapeControls(`Cause: ${error.cause.message}`))}\n`);
}
