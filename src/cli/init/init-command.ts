import { existsSync, rmdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { builtFile } from "../../files/built-file.ts";
import type { Command } from "../command.ts";
import { print, printJson } from "../host.ts";
import { styleFor } from "../terminal/style.ts";
import { HOOK_CLIENTS, type Launch, withHooks, withoutHooks, withoutServer, withServer } from "./entries.ts";
import { type Change, editJsonFile, editOwnFile } from "./json-file.ts";
import { OPENCODE_MARK, OPENCODE_PLUGIN, opencodePlugin } from "./opencode-plugin.ts";
import { otherClients } from "./other-clients.ts";

const LAUNCHERS = ["auto", "npx", "node"] as const;

/** `cairn init`: adds Cairn to the agent configuration of a project, or removes it. */
export const initCommand: Command = {
  path: ["init"],
  summary: "Connect the agents of a project: write .mcp.json and, with --hooks, hooks for Claude Code, Codex, Gemini CLI and opencode.",
  description: "Other content of these files stays. --remove removes exactly what init added.",
  flags: [
    {
      name: "hooks",
      kind: "switch",
      description: "Also save a checkpoint before compaction and at the end of a session, and offer the newest at the start.",
      fallback: false,
    },
    { name: "remove", kind: "switch", description: "Remove Cairn from both files.", fallback: false },
    {
      name: "launch",
      kind: "text",
      description: "Start Cairn by npx, or by the path of this installation. auto: npx, unless this is a checkout.",
      choices: LAUNCHERS,
      fallback: "auto",
    },
  ],
  positional: [],
  examples: ["cairn init", "cairn init --hooks", "cairn init --remove"],
  usesProject: true,
  async run({ host, json, values, project, config }) {
    const { tree: folder } = project();
    const { dataDir } = config().config; // an invalid configuration fails before anything is written
    const launch = launchOf(values.launch as string | undefined);
    const mcp = ".mcp.json";
    const files: { path: string; change: Change }[] = [];
    const edit = (file: string, change: Parameters<typeof editJsonFile>[2]) =>
      files.push({ path: join(folder, file), change: editJsonFile(folder, file, change) });
    const editPlugin = (text: string | undefined) =>
      files.push({ path: join(folder, OPENCODE_PLUGIN), change: editOwnFile(folder, OPENCODE_PLUGIN, OPENCODE_MARK, text) });
    if (values.remove === true) {
      edit(mcp, withoutServer);
      for (const { file } of HOOK_CLIENTS.filter(({ name, file: path }) => name === "claude" || existsSync(join(folder, path)))) {
        edit(file, withoutHooks);
        if (files.at(-1)?.change === "removed") removeIfEmpty(join(folder, dirname(file)));
      }
      if (existsSync(join(folder, OPENCODE_PLUGIN))) {
        editPlugin(undefined);
        removeIfEmpty(join(folder, dirname(OPENCODE_PLUGIN)));
      }
    } else {
      edit(mcp, (content) => withServer(content, launch));
      // Claude Code is always set up; the others where the project has a folder for them.
      const clients = HOOK_CLIENTS.filter(({ name, file }) => name === "claude" || existsSync(join(folder, dirname(file))));
      if (values.hooks === true) for (const client of clients) edit(client.file, (content) => withHooks(content, launch, client));
      if (values.hooks === true && existsSync(join(folder, ".opencode"))) editPlugin(opencodePlugin(launch));
    }
    const others = values.remove === true ? [] : otherClients(launch);
    if (json) return printJson(host, { files, other_clients: others });
    const style = styleFor(host.stdout, host.env);
    print(host, files.map(({ path, change }) => `${change.padEnd(10)}${path}`).join("\n"));
    if (values.remove === true) return;
    print(host, `\nClaude Code and other clients that read .mcp.json find Cairn when they start in ${folder}.`);
    if (values.hooks !== true) print(host, "With --hooks, Claude Code also saves and offers checkpoints automatically.");
    const { suggestAdopt } = await import("../../client/adopt/suggest-adopt.ts");
    const suggestion = await suggestAdopt({ home: host.home, env: host.env, dataDir });
    if (suggestion !== undefined) print(host, suggestion);
    print(host, "\nFor other clients, paste:");
    for (const { client, where, text } of others) print(host, `\n${style.bold(client)} ${style.dim(where)}\n${text.replace(/^/gm, "  ")}`);
  },
};

/** A committed file should not contain a path of this machine. A checkout has no other command.  */
function launchOf(chosen = "auto"): Launch {
  const main = builtFile("bundle/main.cjs");
  const installed = main.split(sep).includes("node_modules");
  const through = chosen === "auto" ? (installed ? "npx" : "node") : chosen;
  return through === "npx" ? { command: "npx", args: ["-y", "cairn-memory"] } : { command: "node", args: [main] };
}

/** Removes the folder of the hooks if it is empty. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It is not empty.
  }
}
