import type { Anchor, AnchorMark, FreshnessState } from "../model/anchor.ts";
import type { DefinitionSite, IndexedFile } from "../model/code-index.ts";
import type { CodeStore } from "../ports/code-store.ts";
import { linesOf, range } from "./anchor-to-index.ts";
import { definitionHash } from "./definition-text.ts";
import type { Within } from "./time-budget.ts";

type Index = Pick<CodeStore, "filesAt" | "filesWith" | "definitions" | "chunksOf" | "renames" | "counts">;

/** A record to check: its anchors, and when they were made. */
export interface CheckedRecord {
  readonly anchors: readonly Anchor[];
  readonly updatedAt: string;
}

/** Renames that are followed, the newest first. */
const RENAMES = 1_000;

/**
 * Compares the anchors of records with the code index, with few queries for all of them. A file that the index read before the record was
 * saved is `unknown` if it differs: the record may describe the newer content. `within` runs each query; an anchor whose queries did not end
 * in time is `unknown`.
 */
export async function checkIndex(index: Index, records: readonly CheckedRecord[], within: Within = always): Promise<AnchorMark[][]> {
  const unknown = records.map(({ anchors }) => anchors.flatMap(unchecked));
  const all = records.flatMap(({ anchors }) => anchors);
  const paths = [...new Set(all.flatMap((anchor) => pathOf(anchor) ?? []))];
  const indexed = paths.length === 0 ? undefined : await within(() => index.filesAt(paths));
  if (!indexed) return unknown;
  const files = new Map(indexed.map((file) => [file.path, file]));
  const missing = paths.filter((path) => !files.has(path));
  if (files.size === 0 && ((await within(() => index.counts()))?.files ?? 0) === 0) return unknown;
  const names = [...new Set(all.flatMap(({ kind, value, content, path }) => (isMoved(kind, content, path) ? [value] : [])))];
  const [moved, sites] = await Promise.all([
    missing.length > 0 ? within(() => findMoved(index, all, missing)) : new Map<string, string>(),
    names.length > 0 ? within(() => index.definitions(names, {}, names.length * SITES)) : [],
  ]);
  return Promise.all(
    records.map(({ anchors, updatedAt }) =>
      Promise.all(
        anchors
          .filter(({ kind }) => kind !== "head")
          .map(async (anchor) => ({ kind: anchor.kind, value: anchor.value, ...(await compare(anchor, updatedAt)) })),
      ),
    ),
  );

  /** Returns whether the definition of a symbol must be looked for: its file is another one now. */
  function isMoved(kind: Anchor["kind"], content: string | undefined, path: string | undefined): boolean {
    return kind === "symbol" && path !== undefined && files.get(path)?.contentHash !== content;
  }

  async function compare(anchor: Anchor, updatedAt: string): Promise<State> {
    const path = pathOf(anchor);
    if (path === undefined || anchor.hash === undefined) return UNKNOWN;
    const file = files.get(path);
    if (anchor.kind === "symbol") return compareSymbol(anchor, path, file, updatedAt);
    if (file) return { state: file.contentHash === anchor.hash ? "fresh" : isOlder(file, anchor, updatedAt) ? "unknown" : "changed" };
    if (!moved) return UNKNOWN;
    const to = moved.get(path);
    if (to !== undefined) return { state: "renamed", to };
    return { state: anchor.generation === undefined ? "unknown" : "gone" };
  }

  async function compareSymbol(anchor: Anchor, path: string, file: IndexedFile | undefined, updatedAt: string): Promise<State> {
    if (file && file.contentHash === anchor.content) return { state: "fresh" };
    if (!moved || !sites) return UNKNOWN;
    const home = file ? path : moved.get(path);
    const named = sites.filter(({ name }) => name === anchor.value);
    const here = named.filter((site) => site.path === home);
    const same = await findSame(here, anchor);
    if (same === undefined) return UNKNOWN;
    if (same) return home === path ? { state: "fresh" } : { state: "renamed", to: home! };
    if (file && isOlder(file, anchor, updatedAt)) return UNKNOWN;
    if (here.length > 0) return { state: "changed" };
    const elsewhere = await findSame(named, anchor);
    if (elsewhere === undefined) return UNKNOWN;
    return elsewhere ? { state: "renamed", to: elsewhere.path } : { state: "gone" };
  }

  /** Returns the definition with the text of the anchor, `null` if there is none, and `undefined` if not all were compared in time. */
  async function findSame(of: readonly DefinitionSite[], { hash }: Anchor): Promise<DefinitionSite | null | undefined> {
    for (const site of of) {
      const found = await within(async () => ({ hash: await hashOf(index, site) }));
      if (!found) return undefined;
      if (found.hash === hash) return site;
    }
    return null;
  }
}

type State = Pick<AnchorMark, "state" | "to">;
const UNKNOWN: State = { state: "unknown" };
/** Definitions of each name that are compared. */
const SITES = 20;

const always: Within = (work) => work();

/** Returns whether the index read the file before the record was anchored to something else than the index. */
function isOlder(file: IndexedFile, anchor: Anchor, updatedAt: string): boolean {
  return anchor.generation === undefined ? file.indexedAt <= updatedAt : file.generation < anchor.generation;
}

async function hashOf(index: Index, { path, line, endLine }: DefinitionSite): Promise<string | undefined> {
  const lines = linesOf(await index.chunksOf(path, range(line, endLine)), line, endLine);
  return lines && definitionHash(lines, 1, lines.length);
}

/** Returns where missing files are now: by recorded renames, else by a file with the same content. */
async function findMoved(index: Index, anchors: readonly Anchor[], missing: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const newest = new Map<string, string>();
  for (const { oldPath, newPath } of await index.renames(RENAMES)) if (!newest.has(oldPath)) newest.set(oldPath, newPath);
  const targets = new Map<string, string>();
  for (const path of missing) {
    let at = path;
    for (let step = 0; step < RENAMES && newest.has(at); step++) at = newest.get(at)!;
    if (at !== path) targets.set(path, at);
  }
  const present = new Set((await index.filesAt([...targets.values()])).map(({ path }) => path));
  for (const [path, to] of targets) if (!present.has(to)) targets.delete(path);
  const wanted = new Map<string, string>();
  for (const anchor of anchors) {
    const path = pathOf(anchor);
    const hash = anchor.kind === "file" ? anchor.hash : anchor.content;
    if (path !== undefined && hash !== undefined && missing.includes(path) && !targets.has(path)) wanted.set(path, hash);
  }
  const copies = wanted.size > 0 ? await index.filesWith([...new Set(wanted.values())]) : [];
  for (const [path, hash] of wanted) {
    const copy = copies.find(({ contentHash }) => contentHash === hash);
    if (copy) targets.set(path, copy.path);
  }
  return targets;
}

/** Returns the file of an anchor. */
export function pathOf({ kind, value, path }: Anchor): string | undefined {
  return kind === "file" ? value : kind === "symbol" ? path : undefined;
}

function unchecked({ kind, value }: Anchor): AnchorMark[] {
  const state: FreshnessState = "unknown";
  return kind === "head" ? [] : [{ kind, value, state }];
}
