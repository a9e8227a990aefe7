import { Writable } from "node:stream";
import type { Command } from "./command.ts";
import { printJson } from "./host.ts";

/** `cairn tour`, which `npm start` gives in a checkout. */
export const tourCommand: Command = {
  path: ["tour"],
  summary: "Show what Cairn does, step by step, then serve it for you to try.",
  flags: [{ name: "once", kind: "switch", description: "End after the tour.", fallback: false }],
  positional: [],
  examples: ["cairn tour", "cairn tour --once"],
  usesProject: true,
  async run({ host, json, values, project, config, runLine }) {
    const { giveTour } = await import("./tour/tour.ts");
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    await giveTour({
      host: json ? { ...host, stdout: nowhere } : host,
      config: config().config,
      project: project().tree,
      once: values.once === true,
      run: runLine,
      onDone: (told) => json && printJson(host, told),
    });
  },
};
