import { ignoredLines, showConfig } from "../config/show.ts";
import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";
import { escapeControls, styleFor } from "./terminal/style.ts";
import { table } from "./terminal/table.ts";

/** `cairn config get`: prints the effective configuration and the source of each value. */
export const configCommand: Command = {
  path: ["config", "get"],
  summary: "Show the effective configuration and the source of each value.",
  description:
    "Precedence: flags, environment variables (CAIRN_HTTP_PORT for http.port), cairn.config.json of the project, ~/.cairn/config.json, defaults.",
  flags: [],
  positional: [],
  examples: ["cairn config get", "cairn config get --set http.port=8080 --json"],
  usesProject: true,
  async run({ host, json, config }) {
    const loaded = config();
    const settings = showConfig(loaded);
    if (json)
      return printJson(host, { settings, ignored: loaded.ignored.map(({ where, key, problem }) => ({ source: where, key, problem })) });
    const columns = ["KEY", "VALUE", "FROM"].map((title, index) => ({ title, flexible: index > 0 }));
    const rows = settings.map(({ key, value, source }) => [key, escapeControls(formatValue(value)), escapeControls(source)]);
    print(host, table(columns, rows, host.stdout.isTTY ? (host.stdout.columns ?? 80) : undefined, styleFor(host.stdout, host.env)));
    const ignored = ignoredLines(loaded);
    if (ignored.length > 0)
      print(host, escapeControls(["", "Ignored, because the project file is not trusted (cairn trust):", ...ignored].join("\n")));
  },
};

function formatValue(value: unknown): string {
  if (value === null) return "-";
  return Array.isArray(value) ? value.join(", ") || "-" : String(value);
}
