import type { SymbolDefinition } from "../../model/code-chunk.ts";
import type { DefinitionSite } from "../../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../../ports/code-store.ts";
import { enclosingDefinition } from "./enclosing-definition.ts";
import { lineReader, type SourceLine } from "./line-reader.ts";
import { isInside, matchOwner, readSymbolPath, type SymbolPath, selectOwned } from "./symbol-path.ts";

/** A use of a symbol, with its line and the definition around it. */
export interface SymbolUse extends SourceLine {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** Absent at the top level of a file. */
  readonly within?: Omit<SymbolDefinition, "role"> | undefined;
}

export interface SymbolUses {
  /** The definitions that the symbol means. */
  readonly definitions: readonly DefinitionSite[];
  readonly uses: readonly SymbolUse[];
  /** Number of uses of the name, whatever they mean. */
  readonly total: number;
  /** Uses whose receiver is another owner, or is unknown while several owners have the name. They are not in `uses`. */
  readonly excluded: number;
  /** The symbol has an owner that defines no such name. All uses of the name are returned then. */
  readonly ownerUnknown: boolean;
}

export type SymbolStore = Pick<CodeStore, "definitions" | "references" | "symbolsOf" | "chunksOf">;

/** Definitions of one name that are read. */
const DEFINITIONS_MAX = 300;
/** Uses of one name that are read to find those of its owner. */
export const USES_MAX = 2_000;

/**
 * Finds the definitions and uses of `bar` or `Foo.bar`. With an owner, a use counts if its receiver is the owner, or if the owner alone
 * defines the name. By syntax the type of a receiver is unknown, so other uses are excluded and counted.
 */
export async function findUses(
  store: SymbolStore,
  { name, owner }: SymbolPath,
  filter: Omit<CodeFilter, "kinds">,
  limit = USES_MAX,
): Promise<SymbolUses> {
  const all = await store.definitions([name], {}, DEFINITIONS_MAX);
  const owned = owner === undefined ? all : selectOwned(owner, all);
  const definitions = owned.length > 0 ? owned : all;
  const { sites, total } = await store.references(name, filter, owner === undefined ? limit : USES_MAX);
  const uses = await describeSites(store, sites);
  if (owner === undefined || owned.length === 0) return { definitions, uses, total, excluded: 0, ownerUnknown: owner !== undefined };
  const others = all.filter((site) => !owned.includes(site));
  const otherOwners = [...new Set(others.flatMap(({ parents }) => parents.slice(-1).map((parent) => readSymbolPath(parent).name)))];
  const ownedByFile = owned.some((site) => !isInside(owner, site));
  const meant = uses.filter(({ text, column, within, path }) => {
    const file = path.slice(path.lastIndexOf("/") + 1).split(".", 1)[0]!;
    const enclosing = [...(within ? [...within.parents, within.name] : []), ...(ownedByFile ? [file] : [])];
    const match = matchOwner({ line: text, column, enclosing }, owner, otherOwners);
    return match === "owner" || (match === "unknown" && others.length === 0);
  });
  return { definitions, uses: meant.slice(0, limit), total: meant.length, excluded: total - meant.length, ownerUnknown: false };
}

async function describeSites(
  store: SymbolStore,
  sites: readonly { readonly path: string; readonly line: number; readonly column: number }[],
): Promise<SymbolUse[]> {
  const lineOf = lineReader(store, sites);
  let file: { readonly path: string; readonly definitions: readonly Omit<SymbolDefinition, "role">[] } | undefined;
  const uses: SymbolUse[] = [];
  for (const { path, line, column } of sites) {
    if (file?.path !== path) file = { path, definitions: (await store.symbolsOf(path)).definitions };
    uses.push({ path, line, column, ...(await lineOf(path, line)), within: enclosingDefinition(file.definitions, line) });
  }
  return uses;
}
