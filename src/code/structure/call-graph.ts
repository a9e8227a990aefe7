import type { CodeKind } from "../../model/code-chunk.ts";
import type { CodeFilter } from "../../ports/code-store.ts";
import { pathRoles } from "../query.ts";
import { isCall } from "./enclosing-definition.ts";
import { findUses, type SymbolStore, type SymbolUse } from "./find-uses.ts";
import { readSymbolPath, type SymbolPath } from "./symbol-path.ts";

/** A definition in the call graph, or the top level of a file. */
export interface GraphNode {
  readonly path: string;
  readonly line: number;
  readonly endLine: number;
  /** Absent for the top level of a file. */
  readonly name?: string | undefined;
  readonly kind?: CodeKind | undefined;
  readonly parents: readonly string[];
  readonly contentHash: string;
}

/** A use inside of a node. */
export interface GraphUse {
  readonly line: number;
  readonly column: number;
  readonly text: string;
  /** The name is followed by arguments, a template or a block. Without, it is a reference, such as a callback. */
  readonly call: boolean;
}

export interface Caller extends GraphNode {
  readonly uses: readonly GraphUse[];
}

export interface Callers {
  readonly callers: readonly Caller[];
  /** Definitions of the symbol. */
  readonly definitions: number;
  /** Uses of the name with another or an unknown receiver. */
  readonly excluded: number;
  /** The owner in the symbol defines no such name, so callers of the name are returned. */
  readonly ownerUnknown: boolean;
  /** More callers exist than were read. */
  readonly truncated: boolean;
}

/** Returns the definitions that use a symbol, by path and line. Imports and other mentions at the top level of a file do not count. */
export async function findCallers(
  store: SymbolStore,
  symbol: SymbolPath,
  filter: Omit<CodeFilter, "kinds">,
  limit: number,
): Promise<Callers> {
  const { definitions, uses, total, excluded, ownerUnknown } = await findUses(store, symbol, filter);
  const callers = new Map<string, Caller & { uses: GraphUse[] }>();
  for (const use of uses) {
    const call = isCall(use, symbol.name);
    if (!use.within && !call) continue;
    const node = nodeOf(use);
    const key = JSON.stringify([node.path, node.name, node.line]);
    const known = callers.get(key) ?? { ...node, uses: [] };
    known.uses.push({ line: use.line, column: use.column, text: use.text, call });
    callers.set(key, known);
  }
  const all = [...callers.values()];
  return {
    callers: all.slice(0, limit),
    definitions: definitions.length,
    excluded,
    ownerUnknown,
    truncated: all.length > limit || (symbol.owner === undefined && total > uses.length),
  };
}

function nodeOf({ path, line, contentHash, within }: SymbolUse): GraphNode {
  if (!within) return { path, line, endLine: line, parents: [], contentHash };
  return { path, line: within.line, endLine: within.endLine, name: within.name, kind: within.kind, parents: within.parents, contentHash };
}

export interface Affected extends GraphNode {
  /** 1 for direct callers. */
  readonly depth: number;
  /** The symbol through which it is affected. */
  readonly via: string;
  /** The file is a test. */
  readonly test: boolean;
}

export interface Impact {
  readonly affected: readonly Affected[];
  /** Names that were not followed: too many definitions have the same name. */
  readonly notFollowed: readonly string[];
  readonly definitions: number;
  readonly truncated: boolean;
}

/** A name with more definitions says too little about which of them is called. */
const AMBIGUOUS = 5;
/** Callers that are read of one symbol. */
const CALLERS_PER_SYMBOL = 200;

/** Returns the definitions that a change of the symbol can affect: its callers, their callers, and so on up to `depth`. */
export async function findImpact(
  store: SymbolStore,
  symbol: SymbolPath,
  {
    depth,
    limit,
    filter,
    signal,
  }: {
    readonly depth: number;
    readonly limit: number;
    readonly filter: Omit<CodeFilter, "kinds">;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Impact> {
  const affected = new Map<string, Affected>();
  const notFollowed = new Set<string>();
  const asked = new Set([labelOf(symbol)]);
  let wave: readonly SymbolPath[] = [symbol];
  let definitions = 0;
  let truncated = false;
  for (let level = 1; level <= depth && wave.length > 0 && !truncated; level++) {
    const next: SymbolPath[] = [];
    for (const current of wave) {
      signal?.throwIfAborted();
      const found = await findCallers(store, current, filter, CALLERS_PER_SYMBOL);
      if (level === 1) definitions = found.definitions;
      if (level > 1 && found.definitions > AMBIGUOUS) {
        notFollowed.add(labelOf(current));
        continue;
      }
      truncated ||= found.truncated;
      for (const { uses: _, ...node } of found.callers) {
        const key = JSON.stringify([node.path, node.name, node.line]);
        if (affected.has(key)) continue;
        if (affected.size >= limit) {
          truncated = true;
          break;
        }
        affected.set(key, { ...node, depth: level, via: labelOf(current), test: pathRoles(node.path).has("test") });
        const path = node.name === undefined ? undefined : { name: node.name, owner: ownerOf(node) };
        if (!path || asked.has(labelOf(path))) continue;
        asked.add(labelOf(path));
        next.push(path);
      }
    }
    wave = next;
  }
  return { affected: [...affected.values()], notFollowed: [...notFollowed], definitions, truncated };
}

/** A method is asked for with its class. */
function ownerOf({ kind, parents }: GraphNode): string | undefined {
  return kind === "method" || kind === "field" ? readSymbolPath(parents.at(-1) ?? "").name || undefined : undefined;
}

function labelOf({ name, owner }: SymbolPath): string {
  return owner === undefined ? name : `${owner}.${name}`;
}
