import { once } from "node:events";
import { relative } from "node:path";
import type { WorkerEvent } from "../../runs/worker-options.ts";
import { shellWord } from "../../text/shell-word.ts";
import { usage } from "../argv.ts";
import type { Command } from "../command.ts";
import { type Host, print, printJson } from "../host.ts";
import { escapeControls, styleFor } from "../terminal/style.ts";
import { describeEvent } from "./describe-event.ts";
import { loadWork } from "./load-work.ts";

/** `cairn run work`: executes the runs of a module's graphs until stopped. */
export const workCommand: Command = {
  path: ["run", "work"],
  summary: "Execute queued, answered and abandoned runs of a module's graphs, until stopped.",
  description:
    "The module exports compiled graphs, alone or with limits as { graph, concurrency, perSecond, retry }, and may export systems: effects by system, component and port. Ctrl-C lets the current steps finish; other workers continue the runs.",
  flags: [
    { name: "module", kind: "text", description: "JavaScript module that exports the graphs.", placeholder: "path", required: true },
    {
      name: "concurrency",
      kind: "text",
      description: "Runs at the same time.",
      placeholder: "number",
      fallback: 10,
      setting: "runs.worker_concurrency",
    },
    { name: "until-idle", kind: "switch", description: "End when nothing waits, instead of listening." },
  ],
  positional: ["module"],
  examples: ["cairn run work order.mjs", "cairn run work order.mjs --until-idle", "cairn run work order.mjs --concurrency 4 --json"],
  usesProject: true,
  async run({ host, values, json, config }) {
    if (typeof values.module !== "string")
      throw usage("<module> is missing. Give the path of a module that exports graphs, such as order.mjs.");
    const { config: settings } = config();
    const { openFromConfig } = await import("../../open/open-from-config.ts");
    const { path, graphs, systems } = await loadWork(values.module, host.cwd);
    const cairn = await openFromConfig(settings, "lead");
    const { inboxes } = await import("../../systems/inboxes.ts");
    const opened = Object.entries(systems).map(([systemId, handlers]) => ({ system: cairn.systems.open(systemId), handlers }));
    const command = `cairn run work ${shellWord(relative(host.cwd, path) || path)}`;
    const report = reporter(host, json);
    const worker = cairn.runs.worker({
      graphs,
      inboxes: opened.flatMap(({ system, handlers }) => inboxes(system, handlers)),
      command,
      folder: host.cwd,
      onEvent: report,
    });
    try {
      const names = [...graphs.map(({ graph }) => graph.name), ...Object.keys(systems)];
      if (json)
        printJson(host, {
          type: "listening",
          worker_id: worker.workerId,
          graphs: graphs.map(({ graph }) => graph.name),
          systems: Object.keys(systems),
        });
      else
        print(
          host,
          escapeControls(
            `Working on ${names.join(", ")}. ${values["until-idle"] === true ? "Ends when nothing waits." : "Stop with Ctrl-C."}`,
          ),
        );
      const stopped = host.signal.aborted ? Promise.resolve() : once(host.signal, "abort");
      await (values["until-idle"] === true ? Promise.race([worker.idle(), stopped]) : stopped);
    } finally {
      await worker.close();
      for (const { system } of opened) await system.close();
      await cairn.close();
    }
  },
};

/** Returns the function that prints events: one line each, or one JSON document each. Reports of other versions are printed once. */
function reporter(host: Host, json: boolean): (event: WorkerEvent) => void {
  const style = styleFor(host.stdout, host.env);
  const known = new Set<string>();
  return (event) => {
    const { text, fields, problem } = describeEvent(event);
    if (event.type === "graph_changed" && known.has(text)) return;
    known.add(event.type === "graph_changed" ? text : "");
    if (json) printJson(host, { at: host.now().toISOString(), ...fields });
    else if (problem) host.stderr.write(escapeControls(`cairn: ${text}\n`));
    else print(host, `${style.dim(host.now().toLocaleTimeString())}  ${escapeControls(text)}`);
  };
}
