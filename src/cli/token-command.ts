import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";

/** `cairn token`: prints the credential of the local user, for curl, scripts and MCP clients over HTTP. */
export const tokenCommand: Command = {
  path: ["token"],
  summary: "Print the token of this user for the local server.",
  description:
    "A file in the data folder holds the token; only this user may read it. The token gives admin access to the server: treat it like a password.",
  flags: [
    { name: "rotate", kind: "switch", description: "Replace the token first. Servers reject the old token at once.", fallback: false },
  ],
  positional: [],
  examples: ['curl -H "Authorization: Bearer $(cairn token)" http://127.0.0.1:7483/v1/key/list', "cairn token --rotate"],
  usesProject: true,
  async run({ host, json, values, config }) {
    const { localToken } = await import("../stores/file/local-token.ts");
    const token = localToken(config().config);
    const text = values.rotate === true ? await token.rotate() : await token.readOrCreate();
    if (json) printJson(host, { token: text, path: token.path });
    else print(host, text);
  },
};
