import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CairnError } from "../../model/errors.ts";
import type { CompiledGraph } from "../../runs/compiled.ts";
import type { WorkerGraph } from "../../runs/worker-options.ts";
import type { Handlers } from "../../systems/inboxes.ts";

/** What a module gives a worker to do. */
export interface Work {
  readonly path: string;
  readonly graphs: readonly WorkerGraph[];
  readonly systems: Readonly<Record<string, Handlers>>;
}

/** Characters of a path in a message. */
const PATH_SHOWN = 200;
const REASON_SHOWN = 1_000;

/** Imports a module and returns the graphs that it exports, alone, with limits, in lists or in objects, and its `systems`. */
export async function loadWork(file: string, cwd: string): Promise<Work> {
  const path = findFile(resolve(cwd, file));
  const shown = JSON.stringify(file.slice(0, PATH_SHOWN));
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = await import(pathToFileURL(path).href);
  } catch (cause) {
    const reason = (cause instanceof Error ? cause.message : String(cause)).slice(0, REASON_SHOWN);
    throw new CairnError("invalid_input", `${shown} could not be imported: ${reason}`, { cause });
  }
  const systems = { ...systemsOf(exported.systems), ...systemsOf((exported.default as { systems?: unknown } | undefined)?.systems) };
  const graphs = withoutRepeats(Object.values(exported).flatMap((value) => graphsIn(value, 2)));
  if (graphs.length + Object.keys(systems).length === 0)
    throw new CairnError(
      "invalid_input",
      `${shown} exports no compiled graph and no systems. Export them: export const order = graph({ name: "order" })….compile();`,
    );
  return { path, graphs, systems };
}

function findFile(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new CairnError("not_found", `There is no module ${JSON.stringify(path.slice(0, PATH_SHOWN))}.`, { cause });
  }
}

/** The keys of a graph with limits. */
const LIMIT_KEYS = ["concurrency", "perSecond", "retry", "run"];

function graphsIn(value: unknown, depth: number): readonly WorkerGraph[] {
  if (isGraph(value)) return [{ graph: value }];
  if (typeof value !== "object" || value === null) return [];
  const { graph, ...others } = value as { readonly graph?: unknown };
  if (isGraph(graph)) return withLimits(graph, others, depth);
  return depth === 0 ? [] : Object.values(value).flatMap((inner) => graphsIn(inner, depth - 1));
}

/** Other graphs may be next to a graph. Any other key is a limit, or a mistake that would leave a graph without its limit. */
function withLimits(graph: CompiledGraph<unknown>, others: Readonly<Record<string, unknown>>, depth: number): readonly WorkerGraph[] {
  const limits: Record<string, unknown> = {};
  const found: WorkerGraph[] = [];
  for (const [key, value] of Object.entries(others)) {
    const inner = depth === 0 && !isGraph(value) ? [] : graphsIn(value, depth - 1);
    if (inner.length > 0) found.push(...inner);
    else if (LIMIT_KEYS.includes(key)) limits[key] = value;
    else if (key !== "systems")
      throw new CairnError(
        "invalid_input",
        `${JSON.stringify(key.slice(0, PATH_SHOWN))} next to the graph ${JSON.stringify(graph.name)} is no limit and no graph. Limits are ${LIMIT_KEYS.join(", ")}.`,
      );
  }
  return [{ graph, ...limits }, ...found];
}

/** A module may export a graph alone, for programs, and with limits, for workers: the limits hold. */
function withoutRepeats(found: readonly WorkerGraph[]): readonly WorkerGraph[] {
  const byGraph = new Map<WorkerGraph["graph"], WorkerGraph>();
  for (const one of found) if (!byGraph.has(one.graph) || Object.keys(one).length > 1) byGraph.set(one.graph, one);
  return [...byGraph.values()];
}

/** Recognises graphs of another copy of this package too. */
function isGraph(value: unknown): value is CompiledGraph<unknown> {
  const { name, fingerprint, definition, continueClaimed } = (value ?? {}) as Partial<CompiledGraph<unknown>>;
  return (
    typeof name === "string" && typeof fingerprint === "string" && typeof definition === "object" && typeof continueClaimed === "function"
  );
}

function systemsOf(value: unknown): Readonly<Record<string, Handlers>> {
  if (typeof value !== "object" || value === null) return {};
  for (const [system, components] of Object.entries(value))
    for (const [component, ports] of Object.entries((components ?? {}) as object))
      for (const [port, effect] of Object.entries((ports ?? {}) as object))
        if (typeof effect !== "function")
          throw new CairnError(
            "invalid_input",
            `systems: ${system}.${component}.${port} is no function. Give effects by system, component and port.`,
          );
  return value as Readonly<Record<string, Handlers>>;
}
