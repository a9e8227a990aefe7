import type { CodeKind } from "../../model/code-chunk.ts";
import type { DefinitionSite } from "../../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../../ports/code-store.ts";
import { findUses } from "./find-uses.ts";
import { lineReader } from "./line-reader.ts";
import { readSymbolPath, selectOwned } from "./symbol-path.ts";

export interface Usage {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** The line itself. */
  readonly text: string;
  /** Hash of the file when it was indexed. */
  readonly contentHash: string;
}

export interface Usages {
  readonly definitions: readonly (Usage & { readonly kind: CodeKind; readonly parents: readonly string[] })[];
  readonly references: readonly Usage[];
  /** Number of all references, returned or not. */
  readonly totalReferences: number;
  /** References to the same name of another owner, or with a receiver of unknown type. They are not counted above. */
  readonly excluded: number;
  /** `Foo` of `Foo.bar` defines no `bar`, so all references to `bar` are returned. */
  readonly ownerUnknown: boolean;
}

/** Returns the definitions and references of a name as it is stored, or else of the last part of `Foo.bar`, as far as they are those of `Foo`. */
export async function findUsages(store: CodeStore, symbol: string, filter: CodeFilter, limit: number): Promise<Usages> {
  const { kinds: _, ...files } = filter;
  const stored = await store.definitions([symbol], filter, limit);
  const { sites, total } = await store.references(symbol, files, limit);
  if (stored.length + sites.length > 0)
    return {
      definitions: await describe(store, stored),
      references: await readLines(store, sites),
      totalReferences: total,
      excluded: 0,
      ownerUnknown: false,
    };
  const path = readSymbolPath(symbol);
  const { owner } = path;
  const all = await store.definitions([path.name], filter, limit);
  const owned = owner === undefined ? all : selectOwned(owner, all);
  const found = await findUses(store, path, files, limit);
  return {
    definitions: await describe(store, owned.length > 0 ? owned : all),
    references: found.uses.map(({ path: file, line, column, text, contentHash }) => ({ path: file, line, column, text, contentHash })),
    totalReferences: found.total,
    excluded: found.excluded,
    ownerUnknown: found.ownerUnknown,
  };
}

async function describe(store: CodeStore, sites: readonly DefinitionSite[]): Promise<Usages["definitions"]> {
  const lines = await readLines(store, sites);
  return sites.map(({ kind, parents }, index) => ({ ...lines[index]!, kind, parents }));
}

async function readLines(
  store: CodeStore,
  sites: readonly { readonly path: string; readonly line: number; readonly column: number }[],
): Promise<Usage[]> {
  const lineOf = lineReader(store, sites);
  const usages: Usage[] = [];
  for (const { path, line, column } of sites) usages.push({ path, line, column, ...(await lineOf(path, line)) });
  return usages;
}
