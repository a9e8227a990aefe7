import { chooseStale, type Reviewable } from "../../freshness/judge.ts";
import { chooseHits, searchedTopK } from "../../freshness/mark-hits.ts";
import type { Anchor, Anchored } from "../../model/anchor.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { type CallContext, type Operation, withRun } from "../../operations/operation.ts";
import type { AnchorRecords, ImportedFile } from "./anchor-import.ts";
import type { ResolveInIndex } from "./anchor-to-tree.ts";
import type { TreeFreshness, TreeFreshnessOptions } from "./tree-freshness.ts";

type Fields = Readonly<Record<string, unknown>>;
type Recalled = Anchored & { readonly projectPath?: string; readonly updatedAt: string };

export interface FreshnessOptions extends TreeFreshnessOptions {
  /** Returns the working tree of a project path; `undefined` if the folder is not on this machine. */
  readonly treeOf: (projectPath: string) => string | undefined;
  /** Returns an operation by its name. */
  readonly find: (name: string) => Operation | undefined;
}

/** Operations that store a record. */
const SAVING: ReadonlySet<string> = new Set([
  "checkpoint_save",
  "checkpoint_update",
  "knowledge_save",
  "knowledge_update",
  "review_resolve",
]);

/** Where the answers of these operations hold records: in a list, below a field of its items, or the answer itself. */
const RECALLING: Readonly<Record<string, { readonly list?: string; readonly record?: string }>> = {
  checkpoint_search: { list: "results", record: "checkpoint" },
  checkpoint_search_all: { list: "results", record: "checkpoint" },
  knowledge_search: { list: "results", record: "knowledge" },
  checkpoint_list: { list: "checkpoints" },
  knowledge_list: { list: "knowledge" },
  checkpoint_get: {},
  knowledge_get: {},
  checkpoint_resume: { record: "checkpoint" },
};

/**
 * Makes an operation anchor the records that it saves to the working tree, and compare the records that it returns with it. The service
 * does both with the code index; only the client side can read files and git.
 */
export function withFreshness(operation: Operation, options: FreshnessOptions): Operation {
  if (SAVING.has(operation.name)) return withAnchors(operation, options);
  if (operation.name === "knowledge_import") return withImportedAnchors(operation, options);
  if (operation.name === "review_list") return withReview(operation, options);
  const place = RECALLING[operation.name];
  return place ? withMarks(operation, place, options) : operation;
}

function withAnchors(operation: Operation, options: FreshnessOptions): Operation {
  const { treeOf, find } = options;
  // An update names only the fields that change; the others are read, because their texts name code as well.
  return withRun(operation, async (cairn, input, context) => {
    const { projectPath, scope, anchors: given, collection, action, ...changes } = input as Fields & { anchors?: readonly string[] };
    const tree = typeof projectPath === "string" && scope !== "shared" ? treeOf(projectPath) : undefined;
    const get = find(getterOf(operation.name, collection));
    const before =
      get && action !== "retire" && given === undefined && tree !== undefined
        ? ((await get.run(cairn, reference(input), context)) as Fields)
        : {};
    const fields = { ...before, ...withoutUndefined(changes) };
    const texts = ["summary", "description", "question", "answer"].flatMap((name) =>
      typeof fields[name] === "string" ? [fields[name]] : [],
    );
    const pairs = (fields.context ?? {}) as Readonly<Record<string, string>>;
    if (tree === undefined) return operation.run(cairn, input, context);
    const { anchor } = await treeFreshness(options);
    const resolve = resolveInIndex(find, cairn, projectPath as string, context);
    const [anchors] = await anchor(tree, [{ texts, context: pairs, given }], resolve);
    return operation.run(cairn, { ...input, anchors }, context);
  });
}

/** Makes an import anchor the records in the file to the working tree. A file that cannot be read is left to the operation, which says why. */
function withImportedAnchors(operation: Operation, options: FreshnessOptions): Operation {
  const { treeOf, find } = options;
  return withRun(operation, async (cairn, input, context) => {
    const { projectPath, scope, content, format, kind, dryRun, anchors: given } = input as unknown as ImportFields;
    const tree = typeof projectPath === "string" && scope !== "shared" && !dryRun ? treeOf(projectPath) : undefined;
    if (tree === undefined || projectPath === undefined) return operation.run(cairn, input, context);
    const [{ anchorImport }, tools] = await Promise.all([import("./anchor-import.ts"), treeFreshness(options)]);
    const resolve = resolveInIndex(find, cairn, projectPath, context);
    const anchor: AnchorRecords = (records) => tools.anchor(tree, records, resolve);
    const anchors = await anchorImport(anchor, { content, format, kind, given }, context.signal);
    return operation.run(cairn, { ...input, ...(anchors && { anchors }) }, context);
  });
}

interface ImportFields extends Omit<ImportedFile, "given"> {
  readonly anchors?: ImportedFile["given"];
  readonly projectPath?: string;
  readonly scope?: string;
  readonly dryRun?: boolean;
}

/** Returns the function that asks the code index of the working tree. A save must not fail because the index cannot answer. */
function resolveInIndex(find: FreshnessOptions["find"], cairn: Cairn, projectPath: string, context: CallContext): ResolveInIndex {
  const resolve = find("code_anchors");
  return async (records) => {
    try {
      const answer = await resolve?.run(cairn, { projectPath, records } as never, context);
      return (answer as { readonly records: readonly (readonly Anchor[])[] } | undefined)?.records;
    } catch {
      return undefined;
    }
  };
}

/** Returns the name of the operation that reads the record of an update. A save has none. */
function getterOf(name: string, collection: unknown): string {
  return name === "review_resolve" ? `${collection}_get` : name.endsWith("_update") ? name.replace("_update", "_get") : "";
}

/** Makes a review compare every anchored record with the working tree, which may have changed since it was indexed. */
function withReview(operation: Operation, options: FreshnessOptions): Operation {
  return withRun(operation, async (cairn, input, context) => {
    const { projectPath, limit = LIMITS.listDefault, all } = input as { projectPath: string; limit?: number; all?: boolean };
    if (all || options.treeOf(projectPath) === undefined) return operation.run(cairn, input, context);
    const answer = (await operation.run(cairn, { ...input, all: true } as never, context)) as { readonly records: readonly Fields[] };
    const unhurried = { ...options, limitMs: Math.max(options.limitMs, REVIEW_MS) };
    const marked = await mark(answer.records, (item) => item as unknown as Recalled, projectPath, unhurried);
    const records = marked.map(({ item, freshness }) => ({ ...item, ...(freshness && { freshness }) }) as unknown as Reviewable);
    const stale = chooseStale(records);
    return { ...answer, records: stale.slice(0, limit), total: stale.length };
  });
}

/** Milliseconds that a review may take for all records of a project. */
const REVIEW_MS = 2_000;

/** The fields that identify the record of an update, as the input of a get. */
function reference({ projectPath, scope, id }: Fields): never {
  return {
    ...(projectPath !== undefined && { projectPath }),
    ...(scope !== undefined && { scope }),
    id,
    maxTokens: LIMITS.answerTokensMax,
  } as never;
}

function withoutUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function withMarks(
  operation: Operation,
  { list, record }: { readonly list?: string; readonly record?: string },
  options: FreshnessOptions,
): Operation {
  return withRun(operation, async (cairn, input, context) => {
    const { freshOnly, topK } = input as { readonly freshOnly?: boolean; readonly topK?: number };
    const wider = freshOnly ? { ...input, freshOnly: false, topK: searchedTopK({ topK, freshOnly }) } : input;
    const answer = (await operation.run(cairn, wider as never, context)) as Record<string, unknown>;
    const { projectPath } = input as { readonly projectPath?: string };
    const items = (list === undefined ? [answer] : (answer[list] ?? [])) as readonly Fields[];
    const recordOf = (item: Fields) => (record === undefined ? item : item[record]) as unknown as Recalled;
    const scoreOf = ({ score }: Fields) => score as number;
    const marked = await mark(items, recordOf, projectPath, options);
    const withRecord = marked.map(({ item, freshness }) => {
      const after = { ...recordOf(item), ...(freshness && { freshness }) };
      return record === undefined ? after : { ...item, [record]: after };
    });
    if (list === undefined) return withRecord[0]!;
    if (topK === undefined || list !== "results") return { ...answer, [list]: withRecord };
    return { ...answer, [list]: chooseHits(withRecord as Fields[], { recordOf, scoreOf }, { topK, freshOnly }) };
  });
}

async function mark(
  items: readonly Fields[],
  recordOf: (item: Fields) => Recalled,
  projectPath: string | undefined,
  options: FreshnessOptions,
) {
  const { treeOf, limitMs } = options;
  // Records of another project than the one of the call come from a search of all projects; shared knowledge has no project.
  const treeFor = (item: Fields) => {
    const path = projectPath ?? recordOf(item).projectPath;
    return path === undefined || item.scope === "shared" || !recordOf(item).anchors?.length ? undefined : treeOf(path);
  };
  const marks = new Map<Fields, Anchored["freshness"]>();
  const trees = new Set(items.map(treeFor));
  for (const tree of trees) {
    if (tree === undefined) continue;
    const own = items.filter((item) => treeFor(item) === tree);
    const { check } = await treeFreshness({ ...options, limitMs: limitMs / trees.size });
    for (const [index, freshness] of (await check(tree, own.map(recordOf))).entries()) marks.set(own[index]!, freshness);
  }
  return items.map((item) => ({ item, freshness: marks.get(item) }));
}

/** Loads what reads files and git with the first record that needs it: most commands do not. */
async function treeFreshness(options: TreeFreshnessOptions): Promise<TreeFreshness> {
  const { openTreeFreshness } = await import("./tree-freshness.ts");
  return openTreeFreshness(options);
}
