import { fromFlags, type Problem } from "../config/given.ts";
import { SETTINGS, settingByKey } from "../config/settings.ts";
import { ignoredLines, maskValue, type ShownSetting, showConfig } from "../config/show.ts";
import { CairnError } from "../model/errors.ts";
import { nearest } from "../text/nearest.ts";
import { usage } from "./argv.ts";
import type { Call, Command, Flag } from "./command.ts";
import { writeUserSetting } from "./config-file.ts";
import { print, printJson } from "./host.ts";
import { escapeControls, styleFor } from "./terminal/style.ts";
import { table } from "./terminal/table.ts";

const KEY: Flag = { name: "key", kind: "text", description: "A configuration key, such as http.port.", placeholder: "key" };

/** `cairn config get [key]`: prints the effective configuration and the source of each value, those of a group such as `http`, or one value. */
export const configGetCommand: Command = {
  path: ["config", "get"],
  summary: "Show the effective configuration and the source of each value, one group or one value.",
  description:
    "Precedence: flags, environment variables (CAIRN_HTTP_PORT for http.port), cairn.config.json of the project, ~/.cairn/config.json, defaults.",
  flags: [KEY],
  positional: ["key"],
  examples: ["cairn config get", "cairn config get http", "cairn config get http.port", "cairn config get --set http.port=8080 --json"],
  usesProject: true,
  async run({ host, json, config, values }) {
    const loaded = config();
    const group = values.key === undefined ? "" : `${String(values.key)}.`;
    const settings = showConfig(loaded).filter(({ key }) => key === values.key || key.startsWith(group));
    const isGroup = settings.some(({ key }) => key !== values.key);
    if (values.key !== undefined && !isGroup) {
      const wanted = assertKey(values.key);
      const setting = settings.find(({ key }) => key === wanted)!;
      if (json) return printJson(host, setting);
      return print(host, escapeControls(formatValue(setting)));
    }
    if (json)
      return printJson(host, { settings, ignored: loaded.ignored.map(({ where, key, problem }) => ({ source: where, key, problem })) });
    const columns = ["KEY", "VALUE", "FROM"].map((title, index) => ({ title, flexible: index > 0, main: index === 1 }));
    const rows = settings.map((setting) => [setting.key, escapeControls(formatValue(setting)), escapeControls(setting.source)]);
    print(host, table(columns, rows, host.stdout.isTTY ? (host.stdout.columns ?? 80) : undefined, styleFor(host.stdout, host.env)));
    const ignored = ignoredLines(loaded);
    if (ignored.length > 0)
      print(host, escapeControls(["", "Ignored, because the project file is not trusted (cairn trust):", ...ignored].join("\n")));
  },
};

/** `cairn config set <key> <value>`: writes a key to the user file. */
export const configSetCommand: Command = {
  path: ["config", "set"],
  summary: "Set a configuration key in ~/.cairn/config.json.",
  description:
    "The value is checked first. A list is written with commas. Flags, variables and a project file have precedence over this file.",
  flags: [
    { ...KEY, required: true },
    { name: "value", kind: "text", description: "The value.", required: true },
  ],
  positional: ["key", "value"],
  examples: ["cairn config set http.port 8080", "cairn config set embedder.kind static"],
  usesProject: true,
  async run(call) {
    const { host, json, values } = call;
    const key = assertKey(values.key);
    if (values.value === undefined) throw usage("<value> is missing. Usage: cairn config set <key> <value>");
    const problems: Problem[] = [];
    const given = fromFlags([[key, String(values.value), "<value>"]], { home: host.home, folder: host.cwd }, problems).get(key);
    const [problem] = problems;
    if (!given) throw usage(`${key}: ${problem?.problem ?? "is not valid"}.`);
    const { path } = await writeUserSetting(host.home, key, given.value);
    const value = maskValue(settingByKey.get(key)!, given.value);
    if (json) return printJson(host, { key, value, file: path });
    print(host, escapeControls(`Set ${key} to ${formatValue({ value })} in ${path}`));
    print(host, overriddenText(call, key));
  },
};

/** `cairn config unset <key>`: removes a key from the user file. */
export const configUnsetCommand: Command = {
  path: ["config", "unset"],
  summary: "Remove a configuration key from ~/.cairn/config.json.",
  flags: [{ ...KEY, required: true }],
  positional: ["key"],
  examples: ["cairn config unset http.port"],
  usesProject: true,
  async run(call) {
    const { host, json, values } = call;
    const key = assertKey(values.key);
    const { path, was } = await writeUserSetting(host.home, key, undefined);
    if (!was) throw new CairnError("not_found", `${path} does not set ${key}.`);
    if (json) return printJson(host, { key, file: path });
    print(host, `Removed ${key} from ${path}`);
    print(host, overriddenText(call, key));
  },
};

/** Reports a value of another source that is in effect. */
function overriddenText({ config }: Call, key: string): string {
  const setting = showConfig(config()).find((one) => one.key === key)!;
  if (setting.source.startsWith("user file")) return "";
  return `In effect: ${formatValue(setting)} (${setting.source})`;
}

function assertKey(given: unknown): string {
  if (given === undefined) throw usage("<key> is missing. cairn config get lists the keys.");
  const key = String(given);
  if (settingByKey.has(key)) return key;
  const hint = nearest(
    key,
    SETTINGS.map((setting) => setting.key),
  );
  throw usage(`Unknown key ${JSON.stringify(key.slice(0, 60))}.${hint ? ` Did you mean ${hint}?` : ""} See: cairn config get`);
}

function formatValue({ value }: Pick<ShownSetting, "value">): string {
  if (value === null) return "-";
  return Array.isArray(value) ? value.join(", ") || "-" : String(value);
}
