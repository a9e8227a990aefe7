import type { LoadedConfig } from "../config/load.ts";
import type { ProjectIdentity } from "../files/git-repository.ts";
import type { Host } from "./host.ts";

/** A flag of the command line. */
export interface Flag {
  /** Without dashes: `sort-by`. */
  readonly name: string;
  /** One letter, for frequent flags. */
  readonly short?: string;
  /** How the value is read. A switch takes no value; lists and maps may be repeated; json is for nested data. */
  readonly kind: "text" | "number" | "switch" | "list" | "map" | "json";
  readonly description: string;
  readonly required?: boolean;
  readonly choices?: readonly string[] | undefined;
  readonly fallback?: unknown;
  /** The name of the value in help: `<path>`. */
  readonly placeholder?: string;
  /** The configuration key that it sets. */
  readonly setting?: string;
}

/** A command as data: what help, completion and parsing need. The build writes these to a file, so that they load quickly. */
export interface CommandEntry {
  /** `["checkpoint", "save"]`. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly description?: string | undefined;
  readonly flags: readonly Flag[];
  /** Flags that may be given without their name, in this order. */
  readonly positional: readonly string[];
  readonly examples: readonly string[];
  /** The command that an alias stands for. */
  readonly aliasOf?: readonly string[];
  /** Whether the command takes `--project`. */
  readonly usesProject: boolean;
  /** --project may name a project without a folder on this machine. */
  readonly storedProject?: boolean | undefined;
}

/** A command that can be run. */
export interface Command extends CommandEntry {
  run(call: Call): Promise<void>;
}

/** One call of a command, parsed. */
export interface Call {
  readonly host: Host;
  /** All commands. */
  readonly table: readonly CommandEntry[];
  /** Values by flag name, for the flags that were given. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly json: boolean;
  /** Returns the project of the folder in --project, or of the current folder. */
  readonly project: () => ProjectIdentity;
  readonly config: () => LoadedConfig;
  /** Sets an exit code other than 0 for a call that succeeded. */
  readonly endWith: (exitCode: number) => void;
  /** Runs another command line and returns its exit code. */
  readonly runLine: (argv: readonly string[], host: Host) => Promise<number>;
}

export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "json", kind: "switch", description: "Print exactly one JSON document; errors as JSON on stderr." },
  { name: "data-dir", kind: "text", description: "Folder of the SQLite files.", placeholder: "path", setting: "data_dir" },
  { name: "storage", kind: "text", description: "sqlite, memory or a postgres:// URL.", placeholder: "storage", setting: "storage" },
  {
    name: "api-url",
    kind: "text",
    description: "A Cairn server that performs the calls. Files are read on this machine.",
    placeholder: "url",
    setting: "api.url",
  },
  {
    name: "api-key",
    kind: "text",
    description: "API key for that server. Other users of this machine can see flags, so prefer CAIRN_API_KEY.",
    placeholder: "key",
    setting: "api.key",
  },
  {
    name: "set",
    kind: "list",
    description: "Any other configuration key, as key=value. See: cairn config get.",
    placeholder: "key=value",
  },
  { name: "help", short: "h", kind: "switch", description: "Show this help." },
  { name: "version", short: "V", kind: "switch", description: "Show the version." },
];

export const PROJECT_FLAG: Flag = {
  name: "project",
  kind: "text",
  description: "Project folder (default: current directory; resolved to its git root).",
  placeholder: "path",
};

/** Returns all flags that a command takes. */
export function flagsOf(command: CommandEntry): readonly Flag[] {
  return [...command.flags, ...commonFlags(command)];
}

/** Returns the flags that a command shares with the others. */
export function commonFlags(command: CommandEntry): readonly Flag[] {
  return [...(command.usesProject ? [PROJECT_FLAG] : []), ...GLOBAL_FLAGS];
}
