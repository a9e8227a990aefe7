import { mkdir, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { GraphShape } from "../../model/graph-shape.ts";
import { type Clock, framedHash, sha256Hex } from "../../model/ids.ts";
import { addMs } from "../../model/run-rules.ts";
import { type StoredWorker, selectWorkers, withAnnouncement } from "../../model/run-worker.ts";
import type { GraphCatalog, WorkerRegistry } from "../../ports/run-queue.ts";
import { ifMissing } from "./entries.ts";
import { replaceFile } from "./replace-file.ts";

/** The shapes of graphs, one file per graph and fingerprint. */
export function fileGraphCatalog(folder: string, now: Clock): GraphCatalog {
  const pathOf = (graph: string, fingerprint: string) => join(folder, `${framedHash(graph, fingerprint)}.json`);
  return {
    async saveGraph(shape) {
      const path = pathOf(shape.graph, shape.fingerprint);
      if ((await readFile(path).catch(ifMissing(undefined))) !== undefined) return;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await replaceFile(path, JSON.stringify({ at: now(), shape }));
    },
    async getGraph(graph, fingerprint) {
      const text = await readFile(pathOf(graph, fingerprint), "utf8").catch(ifMissing(undefined));
      return text === undefined ? undefined : JSON.parse(text).shape;
    },
    async listGraphs({ graph, limit }) {
      const stored = await readAll<{ at: string; shape: GraphShape }>(folder);
      const found = stored.filter(({ shape }) => graph === undefined || shape.graph === graph);
      return found
        .sort((a, b) => (a.at < b.at ? 1 : -1))
        .slice(0, limit)
        .map(({ shape }) => shape);
    },
  };
}

/** The workers that listen for runs, one file per worker. Only the worker itself writes its file. */
export function fileWorkerRegistry(folder: string, now: Clock): WorkerRegistry {
  const pathOf = (workerId: string) => join(folder, `${sha256Hex(workerId)}.json`);
  const readWorkers = async () => (await readAll<readonly StoredWorker[]>(folder)).flat();
  return {
    async announce(worker, leaseMs) {
      const at = now();
      const before = await readWorkers();
      const after = withAnnouncement(before, worker, at, addMs(at, leaseMs));
      const own = after.filter(({ workerId }) => workerId === worker.workerId);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await replaceFile(pathOf(worker.workerId), JSON.stringify(own));
      const remaining = new Set(after.map(({ workerId }) => workerId));
      for (const { workerId } of before) if (!remaining.has(workerId)) await unlink(pathOf(workerId)).catch(ifMissing(undefined));
    },
    async withdraw(workerId) {
      const text = await readFile(pathOf(workerId), "utf8").catch(ifMissing(undefined));
      if (text === undefined) return;
      const until = now();
      await replaceFile(pathOf(workerId), JSON.stringify(JSON.parse(text).map((worker: StoredWorker) => ({ ...worker, until }))));
    },
    listWorkers: async (query) => selectWorkers(await readWorkers(), query, now()),
  };
}

async function readAll<T>(folder: string): Promise<T[]> {
  const found: T[] = [];
  for (const name of await readdir(folder).catch(ifMissing([] as string[]))) {
    if (!name.endsWith(".json")) continue;
    const text = await readFile(join(folder, name), "utf8").catch(ifMissing(undefined));
    if (text !== undefined) found.push(JSON.parse(text));
  }
  return found;
}
