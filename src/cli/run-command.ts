import { type LoadedConfig, loadConfig } from "../config/load.ts";
import { ignoredLines } from "../config/show.ts";
import type { ProjectIdentity } from "../files/git-repository.ts";
import { isFolder } from "../files/is-folder.ts";
import { shellWord } from "../text/shell-word.ts";
import { usage } from "./argv.ts";
import { type Call, type CommandEntry, flagsOf } from "./command.ts";
import type { Host } from "./host.ts";
import { loadCommand } from "./load-command.ts";
import { findProject } from "./project.ts";
import { escapeControls } from "./terminal/style.ts";

/** Loads and runs one command, and returns its exit code. */
export async function runCommand(
  entry: CommandEntry,
  { host, values, ...call }: Pick<Call, "host" | "table" | "values" | "runLine">,
): Promise<number> {
  const command = await loadCommand(entry);
  let exitCode = 0;
  const endWith = (code: number) => {
    exitCode = code;
  };
  await command.run({ ...call, host, values, json: values.json === true, endWith, ...lazyContext(command, values, host) });
  return exitCode;
}

/** Finds the project and loads the configuration on first use: help and completion must work without either. */
function lazyContext(command: CommandEntry, values: Readonly<Record<string, unknown>>, host: Host) {
  let project: ProjectIdentity | undefined;
  let config: LoadedConfig | undefined;
  const findOnce = () => {
    project ??= findProject(values.project as string | undefined, host.cwd, { stored: command.storedProject === true });
    return project;
  };
  /** A project without a folder has no configuration file. */
  const configFolder = () => {
    const { tree } = findOnce();
    return isFolder(tree) ? tree : findProject(undefined, host.cwd).tree;
  };
  return {
    project: findOnce,
    config: () => {
      if (config) return config;
      config = loadConfig({
        flags: configFlags(command, values),
        env: host.env,
        projectDir: configFolder(),
        home: host.home,
        cwd: host.cwd,
      });
      warn(config, configFolder(), values.json === true, host);
      return config;
    },
  };
}

/** Reports ignored keys of a project file and ignored variables on stderr. The call continues: neither must stop it. */
function warn(config: LoadedConfig, tree: string, json: boolean, host: Host): void {
  const lines = ignoredLines(config);
  const messages = [
    ...(lines.length > 0
      ? [`${lines.join("; ")}. Ignored, because the file is not trusted. To trust it: cairn trust ${shellWord(tree)}`]
      : []),
    ...config.unknownVariables.map(({ problem }) => `Ignored ${problem}`),
  ];
  for (const message of messages)
    host.stderr.write(json ? `${JSON.stringify({ warning: { message } })}\n` : escapeControls(`cairn: ${message}\n`));
}

function configFlags(command: CommandEntry, values: Readonly<Record<string, unknown>>): [string, string, string][] {
  const named = flagsOf(command).flatMap((flag): [string, string, string][] => {
    const value = values[flag.name];
    return flag.setting !== undefined && value !== undefined ? [[flag.setting, String(value), `--${flag.name}`]] : [];
  });
  const set = ((values.set as readonly string[] | undefined) ?? []).map((pair): [string, string, string] => {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usage(`--set takes key=value, such as --set http.port=8080, not ${JSON.stringify(pair.slice(0, 60))}.`);
    return [pair.slice(0, equals), pair.slice(equals + 1), "--set"];
  });
  return [...named, ...set];
}
