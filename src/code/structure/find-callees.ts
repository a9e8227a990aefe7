import type { CodeKind } from "../../model/code-chunk.ts";
import type { DefinitionSite } from "../../model/code-index.ts";
import type { CodeStore } from "../../ports/code-store.ts";
import type { GraphNode, GraphUse } from "./call-graph.ts";
import { isCall } from "./enclosing-definition.ts";
import { lineReader } from "./line-reader.ts";
import { isOwnedBy, receiverOf, type SymbolPath, selectOwned } from "./symbol-path.ts";

/** A symbol that a definition uses. */
export interface Callee {
  readonly name: string;
  /** Where the name is defined, the most likely one first. Several if the syntax does not decide. */
  readonly definitions: readonly Omit<GraphNode, "contentHash">[];
  readonly definedTimes: number;
  readonly uses: readonly (GraphUse & { readonly path: string })[];
}

export interface Callees {
  /** The definitions whose callees are listed. */
  readonly definitions: readonly GraphNode[];
  readonly callees: readonly Callee[];
  readonly truncated: boolean;
}

/** Kinds of definitions that can be called. */
const CALLABLE: ReadonlySet<CodeKind> = new Set(["function", "method", "class", "struct", "macro", "interface", "enum"]);
const TYPES: ReadonlySet<CodeKind> = new Set(["class", "struct", "interface", "enum"]);
/** Definitions of the symbol whose bodies are read. */
const BODIES = 5;
/** Distinct names of one body that are looked up. */
const NAMES_MAX = 300;
const DEFINITIONS_READ = 2_000;
/** Definitions shown for one callee. */
const SHOWN_DEFINITIONS = 3;

/** Returns the functions, methods and types of the index that the definitions of a symbol use, in the order of their first use. */
export async function findCallees(
  store: Pick<CodeStore, "definitions" | "symbolsOf" | "chunksOf">,
  { name, owner }: SymbolPath,
  glob: string | undefined,
  limit: number,
): Promise<Callees> {
  const all = await store.definitions([name], { glob }, 300);
  const owned = owner === undefined ? all : selectOwned(owner, all);
  const bodies = (owned.length > 0 ? owned : all).filter(({ kind }) => CALLABLE.has(kind) || kind === "constant" || kind === "variable");
  const uses = new Map<string, (GraphUse & { path: string })[]>();
  const nodes: GraphNode[] = [];
  for (const body of bodies.slice(0, BODIES)) {
    const { references } = await store.symbolsOf(body.path, { from: body.line, to: body.endLine });
    const lineOf = lineReader(store, [body, ...references.map(({ line }) => ({ path: body.path, line }))]);
    const { contentHash } = await lineOf(body.path, body.line);
    nodes.push({ ...nodeOf(body), contentHash });
    for (const reference of references) {
      const { text, language } = await lineOf(body.path, reference.line);
      const known = uses.get(reference.name) ?? [];
      known.push({
        path: body.path,
        line: reference.line,
        column: reference.column,
        text,
        call: isCall({ text, column: reference.column, language }, reference.name),
      });
      uses.set(reference.name, known);
    }
  }
  const names = [...uses.keys()].slice(0, NAMES_MAX);
  const sites = names.length === 0 ? [] : await store.definitions(names, {}, DEFINITIONS_READ);
  const byName = new Map<string, DefinitionSite[]>();
  for (const site of sites) if (isCalled(site, uses.get(site.name)!)) byName.set(site.name, [...(byName.get(site.name) ?? []), site]);
  const callees = names.flatMap((callee) => {
    const found = byName.get(callee);
    if (!found) return [];
    const likely = order(found, uses.get(callee)!);
    const definitions = likely.slice(0, SHOWN_DEFINITIONS).map(nodeOf);
    return [{ name: callee, definitions, definedTimes: found.length, uses: uses.get(callee)! }];
  });
  return {
    definitions: nodes,
    callees: callees.slice(0, limit),
    truncated: callees.length > limit || uses.size > names.length || bodies.length > BODIES,
  };
}

/** A type counts wherever it is named, a function only where it is called: variables often share a function's name. */
function isCalled({ kind }: DefinitionSite, uses: readonly GraphUse[]): boolean {
  return TYPES.has(kind) || (CALLABLE.has(kind) && uses.some(({ call }) => call));
}

/** Puts definitions first whose owner is the receiver of a use, then those of the same file. */
function order(sites: readonly DefinitionSite[], uses: readonly (GraphUse & { readonly path: string })[]): DefinitionSite[] {
  const receivers = new Set(uses.map(({ text, column }) => receiverOf(text, column)).filter((one) => one !== undefined && one !== ""));
  const paths = new Set(uses.map(({ path }) => path));
  const weight = (site: DefinitionSite) =>
    ([...receivers].some((receiver) => isOwnedBy(receiver!, site)) ? 2 : 0) + (paths.has(site.path) ? 1 : 0);
  return [...sites].sort((a, b) => weight(b) - weight(a));
}

function nodeOf({ path, line, endLine, name, kind, parents }: DefinitionSite): Omit<GraphNode, "contentHash"> {
  return { path, line, endLine, name, kind, parents };
}
