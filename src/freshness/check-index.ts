import type { Anchor, AnchorMark, FreshnessState } from "../model/anchor.ts";
import type { DefinitionSite, IndexedFile } from "../model/code-index.ts";
import type { CodeStore } from "../ports/code-store.ts";
import { linesOf, range } from "./anchor-to-index.ts";
import { definitionHash } from "./definition-text.ts";

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
 * saved is `unknown` if it differs: the record may describe the newer content.
 */
export async function checkIndex(index: Index, records: readonly CheckedRecord[]): Promise<AnchorMark[][]> {
  const all = records.flatMap(({ anchors }) => anchors);
  const paths = [...new Set(all.flatMap((anchor) => pathOf(anchor) ?? []))];
  if (paths.length === 0) return records.map(({ anchors }) => anchors.flatMap(unchecked));
  const files = new Map((await index.filesAt(paths)).map((file) => [file.path, file]));
  const missing = paths.filter((path) => !files.has(path));
  const isEmpty = files.size === 0 && (await index.counts()).files === 0;
  const moved = missing.length > 0 && !isEmpty ? await findMoved(index, all, missing) : new Map<string, string>();
  const names = all.filter(({ kind, content, path }) => kind === "symbol" && files.get(path ?? "")?.contentHash !== content);
  const sites =
    names.length > 0 && !isEmpty ? await index.definitions([...new Set(names.map(({ value }) => value))], {}, names.length * 20) : [];
  return Promise.all(
    records.map(async ({ anchors, updatedAt }) => {
      const marks: AnchorMark[] = [];
      for (const anchor of anchors) {
        if (isEmpty || pathOf(anchor) === undefined) marks.push(...unchecked(anchor));
        else marks.push({ kind: anchor.kind, value: anchor.value, ...(await compare(anchor, updatedAt)) });
      }
      return marks;
    }),
  );

  async function compare(anchor: Anchor, updatedAt: string): Promise<Pick<AnchorMark, "state" | "to">> {
    const path = pathOf(anchor)!;
    const file = files.get(path);
    if (anchor.hash === undefined) return { state: "unknown" };
    if (anchor.kind === "symbol") return compareSymbol(anchor, path, file, updatedAt);
    if (file) return { state: file.contentHash === anchor.hash ? "fresh" : isOlder(file, anchor, updatedAt) ? "unknown" : "changed" };
    const to = moved.get(path);
    if (to !== undefined) return { state: "renamed", to };
    return { state: anchor.generation === undefined ? "unknown" : "gone" };
  }

  async function compareSymbol(
    anchor: Anchor,
    path: string,
    file: IndexedFile | undefined,
    updatedAt: string,
  ): Promise<Pick<AnchorMark, "state" | "to">> {
    if (file && file.contentHash === anchor.content) return { state: "fresh" };
    const home = file ? path : moved.get(path);
    const here = sites.filter((site) => site.name === anchor.value && site.path === home);
    for (const site of here) if ((await hashOf(index, site)) === anchor.hash) return renamedFrom(path, home!);
    if (file && isOlder(file, anchor, updatedAt)) return { state: "unknown" };
    if (here.length > 0) return { state: "changed" };
    for (const site of sites.filter(({ name }) => name === anchor.value))
      if ((await hashOf(index, site)) === anchor.hash) return { state: "renamed", to: site.path };
    return { state: "gone" };
  }
}

function renamedFrom(path: string, home: string): Pick<AnchorMark, "state" | "to"> {
  return home === path ? { state: "fresh" } : { state: "renamed", to: home };
}

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
