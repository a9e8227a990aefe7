import { ignoredLines, showConfig } from "../config/show.ts";
import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";
import { harmless, styleFor } from "./terminal/style.ts";
import { table } from "./terminal/table.ts";

/** `cairn config get`: what holds, and where each value came from. */
export const configCommand: Command = {
  path: ["config", "get"],
  summary: "Show the configuration that holds and where each value came from.",
  description:
    "Flags come before the environment (CAIRN_HTTP_PORT for http.port), then cairn.config.json in the project's folder, then ~/.cairn/config.json, then defaults.",
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
    const rows = settings.map(({ key, value, source }) => [key, harmless(shown(value)), harmless(source)]);
    print(host, table(columns, rows, host.stdout.isTTY ? (host.stdout.columns ?? 80) : undefined, styleFor(host.stdout, host.env)));
    const ignored = ignoredLines(loaded);
    if (ignored.length > 0)
      print(host, harmless(["", "Ignored, because the project file is not trusted (cairn trust):", ...ignored].join("\n")));
  },
};

function shown(value: unknown): string {
  if (value === null) return "-";
  return Array.isArray(value) ? value.join(", ") || "-" : String(value);
}
