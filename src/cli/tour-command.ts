import { Writable } from "node:stream";
import type { Command } from "./command.ts";
import { printJson } from "./host.ts";

/** `cairn tour`: runs the guided tour. `npm start` runs it in a checkout. */
export const tourCommand: Command = {
  path: ["tour"],
  summary: "Run a guided tour of Cairn, then serve it for you to try.",
  flags: [{ name: "once", kind: "switch", description: "End after the tour.", fallback: false }],
  positional: [],
  examples: ["cairn tour", "cairn tour --once"],
  usesProject: false,
  async run({ host, json, values, config, runLine }) {
    const { runTour } = await import("./tour/tour.ts");
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    await runTour({
      host: json ? { ...host, stdout: nowhere } : host,
      config: config().config,
      once: values.once === true,
      run: runLine,
      onDone: (result) => json && printJson(host, result),
    });
  },
};
