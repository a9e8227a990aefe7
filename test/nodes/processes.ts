import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { builtCommand } from "../cli/stage.ts";
import { lastingPort } from "../client/processes.ts";
import { killProcess } from "../support/processes.ts";

/** The nodes and workers of one team. Each has a home of its own, as on a machine of its own. */
export interface Team {
  /** Addresses of the nodes; a node keeps its address when it is restarted. */
  readonly nodes: readonly string[];
  /** Kills a node and starts it again. */
  restartNode(node: number): Promise<void>;
  /** Kills the oldest worker and starts another. */
  replaceWorker(): Promise<void>;
  close(): Promise<void>;
}

export interface TeamOptions {
  readonly storage: string;
  readonly folder: string;
  readonly nodes: number;
  readonly workers: number;
}

export async function startTeam({ storage, folder, nodes, workers }: TeamOptions): Promise<Team> {
  const main = builtCommand();
  const ports = await Promise.all(Array.from({ length: nodes }, lastingPort));
  const module = join(folder, "worker.mjs");
  writeFileSync(module, workerModule());
  const running = new Set<ChildProcess>();

  async function start(args: readonly string[], home: string): Promise<ChildProcess> {
    mkdirSync(home, { recursive: true });
    const child = spawn(main, args, {
      cwd: home,
      env: {
        PATH: process.env.PATH!,
        HOME: home,
        CAIRN_STORAGE: storage,
        CAIRN_EMBEDDER_KIND: "none",
        CAIRN_LOG_LEVEL: "silent",
        // The load of the test is not what the limits protect from.
        CAIRN_HTTP_RATE_LIMIT_PER_SECOND: "100000",
        CAIRN_HTTP_RATE_LIMIT_BURST: "100000",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(child);
    child.once("exit", () => running.delete(child));
    const ended = once(child, "exit").then(() => {
      throw new Error(`cairn ${args.join(" ")} ended.`);
    });
    ended.catch(() => {});
    await Promise.race([once(createInterface(child.stdout!), "line"), ended]);
    child.stdout!.resume();
    return child;
  }

  const serve = (node: number) => start(["serve", "--port", String(ports[node]), "--json"], join(folder, `node-${node}`));
  const work = () => start(["run", "work", module, "--json"], join(folder, "worker"));
  const servers = await Promise.all(ports.map((_, node) => serve(node)));
  const pool = await Promise.all(Array.from({ length: workers }, work));
  return {
    nodes: ports.map((port) => `http://127.0.0.1:${port}`),
    async restartNode(node) {
      await killProcess(servers[node]!);
      servers[node] = await serve(node);
    },
    async replaceWorker() {
      await killProcess(pool.shift()!);
      pool.push(await work());
    },
    async close() {
      await Promise.all([...running].map(killProcess));
    },
  };
}

/** A graph of three steps that the workers execute. */
function workerModule(): string {
  const runs = pathToFileURL(join(import.meta.dirname, "../../dist/runs.js")).href;
  return `
    import { END, graph } from ${JSON.stringify(runs)};
    const add = (name) => async (state) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return { ...state, trail: [...state.trail, name] };
    };
    export const parcel = graph({ name: "parcel" })
      .node("pack", add("pack")).edge("pack", "label")
      .node("label", add("label")).edge("label", "send")
      .node("send", add("send")).edge("send", END)
      .entry("pack").compile();`;
}
