import { setImmediate as setImmediatePromise } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { openFilesBudget } from "../../../files/open-files.ts";
import { asCairnError, CairnError } from "../../../model/errors.ts";
import { isSameFile } from "../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase, type SqliteTx } from "../driver/driver.ts";
import { releaseClosedConnections } from "../driver/engine.ts";
import { arrange, needsArranging } from "./build-lists.ts";
import { calibrate } from "./calibrate.ts";
import { findSpace, readSpace, type Space } from "./collections.ts";
import type { FromWorker, ScanAnswer, ScanRequest, ToWorker } from "./protocol.ts";
import { type RepairReport, rebuild } from "./rebuild.ts";
import { type Query, type SearchContext, searchVectors, searchView, type VectorHit } from "./search.ts";
import { type PackCache, packCache } from "./segment-cache.ts";
import { DamagedCodes } from "./segments.ts";
import { allPacks, currentView, type View } from "./view.ts";

/** Codes kept in memory, for all files together: a million vectors of 384 dimensions fit. */
const CACHE_BYTES = 512 * 1024 * 1024;
/** Codes are kept here in a form of their own; the pages they came in are not needed again. */
const CACHE_KIB = 2_000;
/** Connections kept open where descriptors are plentiful. */
const FILES_MAX = 64;
/** The part of the connections that is closed together: closing for real takes a garbage collection with one of the engines. */
const CLOSE_SHARE = 0.25;
const ARRANGE_AGAIN_MS = 30_000;
/** A space that is being filled is arranged when nothing has come for so long: before, it would soon be out of date and only take time. */
const RESTING_MS = 10_000;
/** One that is never at rest is arranged when so many times the number from which lists are used are in none. */
const UNRESTING_MAX = 2;

interface OpenFile {
  /** Its number in the cache; a file that was closed and opened again has another. */
  readonly number: number;
  readonly database: SqliteDatabase;
  readonly views: Map<number, View>;
  readonly arranging: Map<number, Promise<boolean>>;
  /** When a space may be arranged again; another process may be at it, or too much may be changing. */
  readonly arrangeAfter: Map<number, number>;
  /** When a search first saw a space as it is. */
  readonly unchangedSince: Map<number, { readonly change: number; readonly at: number }>;
  closing: boolean;
}

/** Answers scan requests until the port closes. */
export function serve(port: MessagePort): void {
  const files = new Map<string, Promise<OpenFile>>(); // in order of last use
  const inodes = new Map<string, number | undefined>();
  let cache: PackCache | undefined;
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
    const space = file.database.read((tx) => findSpace(tx, request.collection, request.versionId));
    if (space) await startArranging(file, space);
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

  function searchNow(file: OpenFile, { collection, versionId, listsAbove }: ScanRequest, query: Query): VectorHit[] {
    return file.database.read((tx) => {
      const space = findSpace(tx, collection, versionId);
      if (!space) return [];
      const view = look(file, tx, space);
      const unresting = view.unlistedCount > UNRESTING_MAX * listsAbove;
      if (needsArranging(view, listsAbove) && (isAtRest(file, space) || unresting) && Date.now() > (file.arrangeAfter.get(space.id) ?? 0)) {
        file.arrangeAfter.set(space.id, Date.now() + ARRANGE_AGAIN_MS);
        setImmediate(() => startArranging(file, space).catch(() => {})); // a later search tries again
      }
      return searchView(contextOf(file, tx, listsAbove), view, query);
    });
  }

  function isAtRest({ unchangedSince }: OpenFile, { id, change }: Space): boolean {
    if (unchangedSince.get(id)?.change !== change) unchangedSince.set(id, { change, at: Date.now() });
    return Date.now() - unchangedSince.get(id)!.at >= RESTING_MS;
  }

  /** The space as it is in this transaction. Codes that are no longer part of it leave the memory. */
  function look(file: OpenFile, tx: SqliteTx, space: Space): View {
    const before = file.views.get(space.id);
    const view = currentView(tx, space, before);
    file.views.set(space.id, view);
    if (before && before.layout !== view.layout) {
      const kept = new Set(allPacks(view).map(({ id }) => id));
      cache?.drop(allPacks(before).flatMap(({ id }) => (kept.has(id) ? [] : [`${file.number}/${id}` as const])));
    }
    return view;
  }

  function contextOf(file: OpenFile, tx: SqliteTx, listsAbove: number): SearchContext {
    cache ??= packCache(CACHE_BYTES);
    return { tx, cache, file: file.number, listsAbove };
  }

  async function repairAndSearch(file: OpenFile, request: ScanRequest, query: Query, reason: string): Promise<ScanAnswer> {
    const { collection, versionId } = request;
    const about = { collection, versionId, reason };
    try {
      const repair = await file.database.write((tx): RepairReport => {
        const space = findSpace(tx, collection, versionId);
        return { ...about, ...(space ? rebuild(tx, space) : { rebuilt: 0, lost: [] }) };
      });
      file.views.clear();
      return { hits: searchNow(file, request, query), repair };
    } catch {
      // A disk that is full or read-only keeps the codes as they are. The vectors themselves can still be searched.
      const hits = file.database.read((tx) => {
        const space = findSpace(tx, collection, versionId);
        return space ? searchVectors(tx, space, query) : [];
      });
      return { hits, repair: { ...about, rebuilt: 0, lost: [] } };
    }
  }

  function startArranging(file: OpenFile, space: Space): Promise<boolean> {
    let running = file.arranging.get(space.id);
    if (!running) {
      // Lets searches that wait have their turn.
      const pause = async () => {
        await setImmediatePromise();
        if (file.closing) throw new CairnError("cancelled", `The database ${file.database.path} is being closed.`);
      };
      running = arrangeAndCalibrate(file, space, pause).finally(() => file.arranging.delete(space.id));
      file.arranging.set(space.id, running);
    }
    return running;
  }

  async function arrangeAndCalibrate(file: OpenFile, space: Space, pause: () => Promise<void>): Promise<boolean> {
    if (!(await arrange(file.database, space, pause))) return false;
    const read = <T>(work: (context: SearchContext, view: View) => T): T =>
      file.database.read((tx) => {
        const now = readSpace(tx, space.id);
        if (!now) throw new CairnError("not_found", "The collection was dropped meanwhile.");
        return work(contextOf(file, tx, 0), look(file, tx, now));
      });
    const patience = await calibrate(read, pause);
    await file.database.write((tx) =>
      tx.run("UPDATE vector_spaces SET patience = ?, change = change + 1 WHERE id = ?", patience, space.id),
    );
    return true;
  }

  function open(path: string): Promise<OpenFile> {
    // Another file has this name now: the one that was open was moved, or a backup has taken its place.
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
          arranging: new Map(),
          arrangeAfter: new Map(),
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

  /** Closes the files that were not used for longest, if as many are open as may be. */
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
    await Promise.allSettled(opened.arranging.values());
    opened.database.close();
    cache?.dropFile(opened.number);
  }

  /** Gives all memory back; what is needed again is read again. */
  async function release(): Promise<void> {
    cache = undefined;
    for (const [path, file] of files) {
      const opened = await file.catch(() => undefined);
      if (opened?.arranging.size === 0) await close(path);
    }
  }
}
