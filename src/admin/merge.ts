import { CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { DeletableRecords } from "../ports/deletable-records.ts";
import type { RecordStore } from "../ports/recall-store.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";
import { type Moved, moveRecords } from "./move-records.ts";
import { checkpointPages, deletedPages, knowledgePages, PROBLEMS_SHOWN, progressCounter, type Store } from "./record-pages.ts";

/** The project whose records leave it, and the project that receives them. */
export interface MergeProject {
  readonly from: string;
  readonly into: string;
  /** Only counts. */
  readonly dryRun?: boolean | undefined;
  /** Keeps the code index of `from`, because the folder is a working tree of its own. */
  readonly keepCode?: boolean | undefined;
}

export interface MergeReport {
  readonly from: string;
  readonly into: string;
  readonly dryRun: boolean;
  /** Records that were moved, or would be. */
  readonly checkpoints: number;
  readonly knowledge: number;
  /** Deleted records that were moved, or would be. They can be restored in the other project. */
  readonly deleted: number;
  /** Files that were removed from the code index of `from`, or would be. */
  readonly codeFiles: number;
  /** The first records that were moved under another id, because the project has another record with theirs. */
  readonly renamed: Moved["renamed"];
  /** Records that stay in `from`: damaged, invalid, or changed meanwhile. */
  readonly kept: number;
  readonly problems: readonly string[];
  /** Whether the emptied database of `from` was set aside, so that the project is not listed any more. */
  readonly removed: boolean;
}

export interface MergeDeps {
  readonly storage: Storage;
  readonly checkpoints: Store;
  readonly knowledge: Store;
  /** Removes all files from the code index of a project. */
  readonly cleanCode: (projectPath: string) => Promise<unknown>;
}

interface MergeOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number) => void) | undefined;
}

/** Moves all checkpoints and knowledge of one project into another, with their ids, times and counts. May be repeated after a crash. */
export async function mergeProject(
  deps: MergeDeps,
  { from, into, dryRun = false, keepCode = false }: MergeProject,
  { signal, progress }: MergeOptions = {},
): Promise<MergeReport> {
  const { storage, cleanCode } = deps;
  if (into === from) throw new CairnError("invalid_input", "into: is the project itself. Name another one.");
  if (into === SHARED_PROJECT_ID) throw new CairnError("invalid_input", 'into: "shared" is not a project. Name another one.');
  const source = from === SHARED_PROJECT_ID ? undefined : await storage.find(from);
  if (!source)
    throw new CairnError("not_found", `Nothing is stored for the project ${JSON.stringify(from.slice(0, 300))}. See project_list.`);
  const codeFiles = keepCode ? 0 : (await source.code.files()).length;
  const report = { from, into, dryRun, codeFiles, renamed: [], kept: 0, problems: [], removed: false };
  if (dryRun) {
    const [{ total: checkpoints }, { total: knowledge }, ...deleted] = await totals(source);
    return { ...report, checkpoints, knowledge, deleted: deleted.reduce((sum, { total }) => sum + total, 0) };
  }

  const ends = { from, into, signal, count: progressCounter(progress) };
  const none = { records: [], damaged: [] };
  const checkpoints = await moveRecords({
    ...ends,
    pages: checkpointPages(source, signal),
    readSource: (ids) => source.checkpoints.getMany(ids),
    readTarget: async (ids) => (await storage.find(into))?.checkpoints.getMany(ids) ?? none,
    store: deps.checkpoints,
    remove: (records) => source.checkpoints.purge(records.map(({ id }) => id)),
  });
  const deletedCheckpoints = await moveRecords({
    ...ends,
    pages: deletedPages(source.checkpoints, signal),
    readSource: (ids) => readDeleted(source.checkpoints, ids),
    readTarget: async (ids) => readEither((await storage.find(into))?.checkpoints, ids),
    store: deps.checkpoints,
    remove: (records) => source.checkpoints.purge(records.map(({ id }) => id)),
  });
  const knowledge = await moveRecords({
    ...ends,
    pages: knowledgePages(source, signal),
    readSource: (ids) => source.knowledge.getMany(ids),
    readTarget: async (ids) => (await storage.find(into))?.knowledge.getMany(ids) ?? none,
    store: deps.knowledge,
    async remove(records) {
      const remove = records.map(({ id, revision }) => ({ id, revision }));
      return (await source.knowledge.apply({ add: [], replace: [], remove })) === "applied" ? remove.length : 0;
    },
  });
  const deletedKnowledge = await moveRecords({
    ...ends,
    pages: deletedPages(source.knowledge, signal),
    readSource: (ids) => readDeleted(source.knowledge, ids),
    readTarget: async (ids) => readEither((await storage.find(into))?.knowledge, ids),
    store: deps.knowledge,
    remove: (records) => source.knowledge.purge(records.map(({ id }) => id)),
  });
  const moves = [checkpoints, knowledge, deletedCheckpoints, deletedKnowledge];
  if (!keepCode) await cleanCode(from);
  const isEmpty = (await totals(source)).every(({ total }) => total === 0);
  const inUse = isEmpty && !keepCode ? await setAside(storage, from, into) : undefined;
  const problems = [...moves.flatMap((move) => move.problems), ...(inUse === undefined ? [] : [inUse])];
  return {
    ...report,
    checkpoints: checkpoints.moved,
    knowledge: knowledge.moved,
    deleted: deletedCheckpoints.moved + deletedKnowledge.moved,
    renamed: moves.flatMap((move) => move.renamed).slice(0, PROBLEMS_SHOWN),
    kept: moves.reduce((sum, { kept }) => sum + kept, 0),
    problems: problems.slice(0, PROBLEMS_SHOWN),
    removed: isEmpty && !keepCode && inUse === undefined,
  };
}

/** Reads deleted records by id, in the form in which they are moved. */
async function readDeleted<RecordType>(store: DeletableRecords<RecordType>, ids: readonly string[]) {
  const found = await Promise.all(ids.map((id) => store.getDeleted(id)));
  return { records: found.flatMap((one) => (one ? [{ ...one.record, deletedAt: one.deletedAt }] : [])), damaged: [] };
}

/** Reads records by id, visible or deleted: an id is taken in either case. */
async function readEither<RecordType extends object>(store: RecordStore<RecordType, never> | undefined, ids: readonly string[]) {
  if (!store) return { records: [], damaged: [] };
  const [{ records, damaged }, deleted] = [await store.getMany(ids), await readDeleted(store, ids)];
  return { records: [...records.map((record) => ({ ...record, deletedAt: "" })), ...deleted.records], damaged };
}

function totals({ checkpoints, knowledge }: ProjectStore) {
  return Promise.all([
    checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" }),
    knowledge.list({ limit: 1 }),
    checkpoints.listDeleted({ limit: 1 }),
    knowledge.listDeleted({ limit: 1 }),
  ]);
}

/** Sets the emptied database aside. Returns why it stays: another process may have it open, and its next write must not be lost. */
async function setAside(storage: Storage, from: string, into: string): Promise<string | undefined> {
  try {
    await storage.quarantine(from, [`not damaged: its records were merged into ${into}`]);
    return undefined;
  } catch (error) {
    if (error instanceof CairnError && error.code === "conflict")
      return `The empty project stays listed until the next merge. ${error.message}`;
    throw error;
  }
}
