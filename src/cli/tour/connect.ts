import { builtFile } from "../../files/built-file.ts";
import { shellWord } from "../../text/shell-word.ts";
import type { Style } from "../terminal/style.ts";

/** Explains how to connect an agent and how to call the server at this address, whose token is in `dataDir`. */
export function connectText(url: string, dataDir: string, style: Style): string {
  const main = builtFile("bundle/main.cjs");
  const token = `node ${shellWord(main)} token --data-dir ${shellWord(dataDir)}`;
  const entry = { mcpServers: { cairn: { command: "node", args: [main, "mcp"] } } };
  return [
    `${style.bold("Connect an agent")} ${style.dim("(.mcp.json in any project of yours; it keeps its memory in ~/.cairn)")}`,
    indented(JSON.stringify(entry, null, 2)),
    "",
    `${style.bold("Or look around here")} ${style.dim("(the tour's data, gone when you stop)")}`,
    `  Console         ${style.cyan(url)}`,
    `    Sign in by    node ${shellWord(main)} ui --data-dir ${shellWord(dataDir)}`,
    `  API page        ${style.cyan(`${url}/docs`)}`,
    `  MCP over HTTP   ${style.cyan(`${url}/mcp`)}`,
    `  Try             curl -s -H "Authorization: Bearer $(${token})" ${url}/v1/key/list`,
    "",
    style.dim("Stop with Ctrl-C."),
  ].join("\n");
}

const indented = (text: string) => text.replace(/^/gm, "  ");
