import type { LoadedConfig } from "../config/load.ts";
import type { ProjectIdentity } from "../files/git-repository.ts";
import type { Host } from "./host.ts";

/** One thing that may be given on the command line. */
export interface Flag {
  /** Without dashes: `sort-by`. */
  readonly name: string;
  /** One letter, for the few that deserve it. */
  readonly short?: string;
  /** What a text is read as. A switch takes no value; lists and maps may be repeated; json is for nested data. */
  readonly kind: "text" | "number" | "switch" | "list" | "map" | "json";
  readonly description: string;
  readonly required?: boolean;
  readonly choices?: readonly string[] | undefined;
  readonly fallback?: unknown;
  /** What stands for the value in help: `<path>`. */
  readonly placeholder?: string;
  /** The configuration key that it sets. */
  readonly setting?: string;
}

/** A command, whatever it does: help, completion and parsing need no more than this. */
export interface Command {
  /** `["checkpoint", "save"]`. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly description?: string | undefined;
  readonly flags: readonly Flag[];
  /** Names of flags that may be given without their name, in this order. */
  readonly positional: readonly string[];
  readonly examples: readonly string[];
  /** Whether `--project` means something here. */
  readonly usesProject: boolean;
  run(call: Call): Promise<void>;
}

/** One call of a command, parsed. */
export interface Call {
  readonly host: Host;
  /** By flag name; what was not given is not there. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly json: boolean;
  /** The project of the folder that was named, or of the current one. */
  readonly project: () => ProjectIdentity;
  readonly config: () => LoadedConfig;
  /** Ends with this exit code although it worked, where success has more than one. */
  readonly endWith: (exitCode: number) => void;
  /** Runs another command line, as a person would, and gives its exit code. */
  readonly runLine: (argv: readonly string[], host: Host) => Promise<number>;
}

export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "json", kind: "switch", description: "Print exactly one JSON document; errors as JSON on stderr." },
  { name: "data-dir", kind: "text", description: "Folder of the SQLite files.", placeholder: "path", setting: "data_dir" },
  { name: "storage", kind: "text", description: "sqlite, memory or a postgres:// URL.", placeholder: "storage", setting: "storage" },
  {
    name: "api-url",
    kind: "text",
    description: "A Cairn server that does the work; files are still read here.",
    placeholder: "url",
    setting: "api.url",
  },
  {
    name: "api-key",
    kind: "text",
    description: "Key for that server; other people of this machine cannot see it in CAIRN_API_KEY.",
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
  description: "A folder of the project. Default: the current one. The project is the enclosing git repository, else the folder itself.",
  placeholder: "path",
};

/** All flags that a command takes. */
export function flagsOf(command: Command): readonly Flag[] {
  return [...command.flags, ...(command.usesProject ? [PROJECT_FLAG] : []), ...GLOBAL_FLAGS];
}
