import { setImmediate as setImmediatePromise } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { openFilesBudget } from "../../../files/open-files.ts";
import { asCairnError, CairnError } from "../../../model/errors.ts";
import { isSameFile } from "../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase, type SqliteTx } from "../driver/driver.ts";
import { releaseClosedConnections } from "../driver/engine.ts";
import { buildLists, needsLists } from "./build-lists.ts";
import { calibrate } from "./calibrate.ts";
import { findCollection, readCollection, type VectorCollection } from "./collection.ts";
import type { FromWorker, ScanAnswer, ScanRequest, ToWorker } from "./protocol.ts";
import { type RepairReport, rebuild } from "./rebuild.ts";
import { type Query, type SearchContext, searchVectors, searchView, type VectorHit } from "./search.ts";
import { type SegmentCache, segmentCache } from "./segment-cache.ts";
import { DamagedCodes } from "./segments.ts";
import { allSegments, currentView, type View } from "./view.ts";

/** Codes kept in memory, for all files together: a million vectors of 384 dimensions fit. */
const CACHE_BYTES = 512 * 1024 * 1024;
/** The codes are cached decoded, so the pages they came from are not needed again. */
const CACHE_KIB = 2_000;
/** Connections that stay open where the limit of descriptors is high. */
const FILES_MAX = 64;
/** The part of the connections that is closed together: closing for real takes a garbage collection with one of the engines. */
const CLOSE_SHARE = 0.25;
const BUILD_AGAIN_MS = 30_000;
/** Milliseconds without a write after which the lists are built. Lists built during a bulk write would soon be out of date. */
const IDLE_MS = 10_000;
/** A collection that is never idle gets lists once this multiple of `listsAbove` vectors is outside the lists. */
const BUSY_BUILD_FACTOR = 2;

interface OpenFile {
  /** Identifies the file in the cache. A reopened file has a new number. */
  readonly number: number;
  readonly database: SqliteDatabase;
  readonly views: Map<number, View>;
  readonly building: Map<number, Promise<boolean>>;
  /** The earliest time of the next build; another process may be building, or too many keys may be changing. */
  readonly buildAfter: Map<number, number>;
  /** When a search first saw the current state of a collection. */
  readonly unchangedSince: Map<number, { readonly change: number; readonly at: number }>;
  closing: boolean;
}

/** Answers scan requests until the port closes. */
export function serve(port: MessagePort): void {
  const files = new Map<string, Promise<OpenFile>>(); // in order of last use
  const inodes = new Map<string, number | undefined>();
  let cache: SegmentCache | undefined;
  let fileCount = 0;

  port.on("message", (message: ToWorker) => {
    if ("close" in message) return void close(message.close);
    if ("release" in message) return void release();
    const { id, request } = message;
    handle(request).then(
      (answer) => port.postMessage({ id, answer } satisfies FromWorker),
      (error) => {
        const { code, message, details } = asCairnError(error);
        port.postMessage({ id, error: { code, message, ...(details && { details }) } } satisfies FromWorker);
      },
    );
  });

  async function handle(request: ScanRequest): Promise<ScanAnswer> {
    const file = await open(request.path);
    const { task } = request;
    if (task.kind === "search") return search(file, request, task);
    const collection = file.database.read((tx) => findCollection(tx, request.collection, request.versionId));
    if (collection) await startBuild(file, collection);
    return { hits: [] };
  }

  async function search(file: OpenFile, request: ScanRequest, query: Query): Promise<ScanAnswer> {
    try {
      return { hits: searchNow(file, request, query) };
    } catch (error) {
      if (!(error instanceof DamagedCodes)) throw error;
      return await repairAndSearch(file, request, query, error.message);
    }
  }

  function searchNow(file: OpenFile, { collection: name, versionId, listsAbove }: ScanRequest, query: Query): VectorHit[] {
    return file.database.read((tx) => {
      const collection = findCollection(tx, name, versionId);
      if (!collection) return [];
      const view = refreshView(file, tx, collection);
      const mustBuild = view.unlistedCount > BUSY_BUILD_FACTOR * listsAbove;
      if (
        needsLists(view, listsAbove) &&
        (isIdle(file, collection) || mustBuild) &&
        Date.now() > (file.buildAfter.get(collection.id) ?? 0)
      ) {
        file.buildAfter.set(collection.id, Date.now() + BUILD_AGAIN_MS);
        setImmediate(() => startBuild(file, collection).catch(() => {})); // a later search tries again
      }
      return searchView(contextOf(file, tx, listsAbove), view, query);
    });
  }

  function isIdle({ unchangedSince }: OpenFile, { id, change }: VectorCollection): boolean {
    if (unchangedSince.get(id)?.change !== change) unchangedSince.set(id, { change, at: Date.now() });
    return Date.now() - unchangedSince.get(id)!.at >= IDLE_MS;
  }

  /** Returns the collection as this transaction sees it, and drops removed codes from the cache. */
  function refreshView(file: OpenFile, tx: SqliteTx, collection: VectorCollection): View {
    const before = file.views.get(collection.id);
    const view = currentView(tx, collection, before);
    file.views.set(collection.id, view);
    if (before && before.layout !== view.layout) {
      const kept = new Set(allSegments(view).map(({ id }) => id));
      cache?.drop(allSegments(before).flatMap(({ id }) => (kept.has(id) ? [] : [`${file.number}/${id}` as const])));
    }
    return view;
  }

  function contextOf(file: OpenFile, tx: SqliteTx, listsAbove: number): SearchContext {
    cache ??= segmentCache(CACHE_BYTES);
    return { tx, cache, file: file.number, listsAbove };
  }

  async function repairAndSearch(file: OpenFile, request: ScanRequest, query: Query, reason: string): Promise<ScanAnswer> {
    const { collection: name, versionId } = request;
    const about = { collection: name, versionId, reason };
    try {
      const repair = await file.database.write((tx): RepairReport => {
        const collection = findCollection(tx, name, versionId);
        return { ...about, ...(collection ? rebuild(tx, collection) : { rebuilt: 0, lost: [] }) };
      });
      file.views.clear();
      return { hits: searchNow(file, request, query), repair };
    } catch {
      // A full or read-only disk prevents the rebuild. The vectors themselves can still be searched.
      const hits = file.database.read((tx) => {
        const collection = findCollection(tx, name, versionId);
        return collection ? searchVectors(tx, collection, query) : [];
      });
      return { hits, repair: { ...about, rebuilt: 0, lost: [] } };
    }
  }

  function startBuild(file: OpenFile, collection: VectorCollection): Promise<boolean> {
    let running = file.building.get(collection.id);
    if (!running) {
      // Returns to the event loop, so that waiting searches run.
      const pause = async () => {
        await setImmediatePromise();
        if (file.closing) throw new CairnError("cancelled", `The database ${file.database.path} is being closed.`);
      };
      running = buildAndCalibrate(file, collection, pause).finally(() => file.building.delete(collection.id));
      file.building.set(collection.id, running);
    }
    return running;
  }

  async function buildAndCalibrate(file: OpenFile, collection: VectorCollection, pause: () => Promise<void>): Promise<boolean> {
    if (!(await buildLists(file.database, collection, pause))) return false;
    const read = <T>(work: (context: SearchContext, view: View) => T): T =>
      file.database.read((tx) => {
        const now = readCollection(tx, collection.id);
        if (!now) throw new CairnError("not_found", "The collection was dropped meanwhile.");
        return work(contextOf(file, tx, 0), refreshView(file, tx, now));
      });
    const probes = await calibrate(read, pause);
    await file.database.write((tx) =>
      tx.run("UPDATE vector_collections SET probes = ?, change = change + 1 WHERE id = ?", probes, collection.id),
    );
    return true;
  }

  function open(path: string): Promise<OpenFile> {
    // Another file has this name now: the open one was migrated, or a backup replaced it.
    if (inodes.has(path) && !isSameFile(path, inodes.get(path))) void close(path);
    let file = files.get(path);
    if (file) files.delete(path);
    else {
      const number = ++fileCount;
      file = makeRoom().then(async () => {
        const database = await openSqlite({ path, mustExist: true, cacheKib: CACHE_KIB });
        inodes.set(path, inodeOf(path));
        return {
          number,
          database,
          views: new Map(),
          building: new Map(),
          buildAfter: new Map(),
          unchangedSince: new Map(),
          closing: false,
        };
      });
      const opening = file;
      opening.catch(() => {
        if (files.get(path) === opening) files.delete(path); // another attempt may have taken its place
      });
    }
    files.set(path, file);
    return file;
  }

  /** Closes the least recently used files when the limit of open files is reached. */
  async function makeRoom(): Promise<void> {
    const max = Math.min(FILES_MAX, openFilesBudget().searched);
    if (files.size < max) return;
    const oldest = [...files.keys()].slice(0, Math.max(1, Math.floor(max * CLOSE_SHARE)));
    await Promise.all(oldest.map(close));
    await releaseClosedConnections();
  }

  async function close(path: string): Promise<void> {
    const file = files.get(path);
    files.delete(path);
    inodes.delete(path);
    const opened = await file?.catch(() => undefined);
    if (!opened) return;
    opened.closing = true;
    await Promise.allSettled(opened.building.values());
    opened.database.close();
    cache?.dropFile(opened.number);
  }

  /** Frees all memory; the next search reads its codes again. */
  async function release(): Promise<void> {
    cache = undefined;
    for (const [path, file] of files) {
      const opened = await file.catch(() => undefined);
      if (opened?.building.size === 0) await close(path);
    }
  }
}
