import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";

/** `cairn token`: the credential of the local user, for curl, scripts and MCP clients that connect over HTTP. */
export const tokenCommand: Command = {
  path: ["token"],
  summary: "Print the token with which this user calls the local server.",
  description:
    "The token is stored in the data folder, in a file that only this user may read. Its bearer is an administrator of the server, so treat it like a password.",
  flags: [{ name: "rotate", kind: "switch", description: "Replace the token first. Servers refuse the old one at once.", fallback: false }],
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
