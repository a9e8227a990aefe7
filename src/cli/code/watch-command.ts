import type { Command } from "../command.ts";
import { print, printJson } from "../host.ts";
import { styleFor } from "../terminal/style.ts";

/** `cairn code watch`: keeps the index up to date until stopped. */
export const watchCommand: Command = {
  path: ["code", "watch"],
  summary: "Index the project now and whenever files change, until stopped.",
  flags: [
    {
      name: "include-ignored",
      kind: "switch",
      description: "Also index files that .gitignore, .cairnignore and the built-in rules exclude.",
    },
  ],
  positional: [],
  examples: ["cairn code watch", "cairn code watch --project ~/app"],
  usesProject: true,
  async run({ host, values, json, project, config }) {
    const { config: settings } = config();
    const { watchIndex } = await import("../../client/watch/watch-index.ts");
    const style = styleFor(host.stdout, host.env);
    if (!json) print(host, `Watching ${project().tree}. Stop with Ctrl-C.`);
    await watchIndex(settings, project().tree, {
      includeIgnored: values["include-ignored"] === true,
      signal: host.signal,
      onChange({ status, counts, failedFiles }) {
        if (json) return printJson(host, { at: host.now().toISOString(), status, counts, failed_files: failedFiles });
        const changed = Object.entries(counts).filter(([name, count]) => count > 0 && name !== "unchanged" && name !== "bytes");
        print(host, `${style.dim(host.now().toLocaleTimeString())}  ${changed.map(([name, count]) => `${count} ${name}`).join(", ")}`);
      },
      onProblem: (message) => void host.stderr.write(`cairn: ${message}\n`),
    });
  },
};
