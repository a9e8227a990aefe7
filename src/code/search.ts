import type { CodeKind } from "../model/code-chunk.ts";
import type { CodeChunk, DefinitionSite } from "../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../ports/code-store.ts";
import type { Embedders } from "../ports/embedders.ts";
import { type Found, fusedCandidates, type SearchMode } from "../recall/search.ts";
import { estimateTokens, withinBudget } from "../text/budget.ts";
import { excerpt } from "./excerpt.ts";
import type { PathRole } from "./path-role.ts";
import { type CodeQuery, foldName, nameParts, readQuery } from "./query.ts";
import { rankOutlines, rankTexts } from "./rank.ts";

export interface CodeSearch extends CodeFilter {
  readonly query: string;
  readonly topK: number;
  readonly mode?: SearchMode | undefined;
  /** Kinds of files that are not to be ranked down. */
  readonly include?: readonly PathRole[] | undefined;
  /** So many lines before and after each hit. */
  readonly contextLines?: number | undefined;
  /** About so many tokens of text in all; at least one hit is given. */
  readonly maxTokens?: number | undefined;
}

export interface CodeHit {
  readonly path: string;
  /** Of the hit itself; `text` begins at `textStartLine`. */
  readonly startLine: number;
  readonly endLine: number;
  readonly textStartLine: number;
  readonly text: string;
  readonly language: string;
  readonly kind: CodeKind;
  readonly name?: string | undefined;
  readonly parents: readonly string[];
  /** How good among the hits of this answer: 1 for the best. */
  readonly score: number;
  readonly found: Found & { readonly definition?: true | undefined };
  /** Of the file when it was indexed, so that whoever has the file can tell whether the hit is stale. */
  readonly contentHash: string;
  readonly indexedAt: string;
}

export interface CodeAnswer {
  readonly hits: readonly CodeHit[];
  /** What was missing, in words a person understands; empty when nothing was. */
  readonly degraded: readonly string[];
  readonly model?: string | undefined;
  /** Hits that the budget left out. */
  readonly leftOut: number;
}

/** Against an index that changes without a pause, a search ends with what it has. */
const ATTEMPTS = 10;
/** Of so many definitions of a common name those that are meant are looked for, and so many of them are ranked. */
const DEFINITIONS_READ = 300;
const DEFINITIONS_MAX = 50;
/** What is further down by meaning is a candidate only if the words found it too, and then its cosine is looked up. */
const NEAREST = 100;
/** So many of the fused candidates are ranked; the right one is hardly ever further down. */
const CANDIDATES = 120;
/** And the texts of so many are read. */
const TEXTS = 60;
/** Code is full of names that a question shares with it, so that words count more here than in prose. */
const MEANING = 0.7;

/** Words, meaning and symbols together, in the order a person would want. */
export async function searchCode(
  store: CodeStore,
  embedders: Embedders,
  search: CodeSearch,
  signal: AbortSignal | undefined,
  attempts = ATTEMPTS,
): Promise<CodeAnswer> {
  const { query, topK, mode = "hybrid", include = [], contextLines = 0, maxTokens, ...filter } = search;
  const asked = readQuery(query);
  const { order, found, degraded, model } = await fusedCandidates(store, embedders, {
    query,
    topK: Math.max(40, topK),
    nearest: mode === "hybrid" ? Math.max(NEAREST, topK * 2) : undefined,
    filter,
    mode,
    meaning: MEANING,
    signal,
  });
  // A definition counts even where neither words nor meaning found it. By meaning alone is what `semantic` asks for.
  const definitions = mode === "semantic" || asked.names.length === 0 ? [] : await store.definitions(asked.names, filter, DEFINITIONS_READ);
  const defining = new Set(
    meant(asked, definitions)
      .slice(0, DEFINITIONS_MAX)
      .map(({ chunkId }) => chunkId),
  );
  const best = order.slice(0, Math.max(CANDIDATES, topK * 2));
  const fused = new Map(best.map(({ id, score }) => [id, score]));
  const wanted = [...new Set([...fused.keys(), ...defining])];
  const outlines = await store.outlines(wanted);
  const candidates = rankOutlines(
    asked,
    outlines.map((chunk) => ({ chunk, fused: fused.get(chunk.id) ?? 0, defines: defining.has(chunk.id) })),
    new Set(include),
  );
  const leading = candidates.slice(0, Math.max(TEXTS, topK * 2)).map(({ chunk }) => chunk.id);
  const read = new Map((await store.getMany(leading)).map((chunk) => [chunk.id, chunk]));
  // A file that was indexed anew between two of these steps has other chunks by now, and would be missing from the answer.
  if ((outlines.length < wanted.length || read.size < leading.length) && attempts > 1)
    return searchCode(store, embedders, search, signal, attempts - 1);
  const ranked = rankTexts(asked, candidates, (id) => read.get(id)?.text)
    .flatMap((one) => {
      const chunk = read.get(one.chunk.id);
      return chunk ? [{ ...one, chunk }] : [];
    })
    .slice(0, topK);
  const hits = await toHits(
    store,
    ranked,
    (id) => ({ ...found(id), ...(defining.has(id) && { definition: true as const }) }),
    contextLines,
  );
  return { ...cut(hits, maxTokens), degraded, model };
}

/** Of the definitions of `a.b` those inside of an `a`, if there are any. */
function meant({ owners }: CodeQuery, definitions: readonly DefinitionSite[]): readonly DefinitionSite[] {
  const isOwned = ({ name, parents, path }: DefinitionSite) => {
    const owner = owners.get(name);
    const file = path.slice(path.lastIndexOf("/") + 1).split(".", 1)[0]!;
    return (
      owner !== undefined && [...parents.map((parent) => nameParts(parent).at(-1)!), file].some((one) => foldName(one) === foldName(owner))
    );
  };
  const owned = new Set(definitions.filter(isOwned).map(({ name }) => name));
  return definitions.filter((site) => !owned.has(site.name) || isOwned(site));
}

export async function toHits(
  store: CodeStore,
  ranked: readonly { readonly chunk: CodeChunk; readonly score: number }[],
  found: (id: string) => CodeHit["found"],
  contextLines: number,
): Promise<CodeHit[]> {
  const top = ranked[0]?.score ?? 0;
  const files = new Map<string, readonly CodeChunk[]>();
  const hits: CodeHit[] = [];
  for (const { chunk, score } of ranked) {
    const { id, path, startLine, endLine, language, kind, name, parents, contentHash, indexedAt } = chunk;
    let shown = { startLine, text: chunk.text.replace(/\n$/, "") };
    if (contextLines > 0) {
      const whole = files.get(path) ?? (await store.chunksOf(path));
      files.set(path, whole);
      // Of another generation the lines may be others: then the hit stands alone.
      if (whole[0]?.generation === chunk.generation) shown = excerpt(whole, startLine - contextLines, endLine + contextLines) ?? shown;
    }
    const relative = top > 0 ? score / top : 0;
    const names = { language, kind, ...(name !== undefined && { name }), parents };
    hits.push({
      path,
      startLine,
      endLine,
      textStartLine: shown.startLine,
      text: shown.text,
      ...names,
      score: relative,
      found: found(id),
      contentHash,
      indexedAt,
    });
  }
  return hits;
}

function cut(hits: readonly CodeHit[], maxTokens: number | undefined): { hits: readonly CodeHit[]; leftOut: number } {
  if (maxTokens === undefined) return { hits, leftOut: 0 };
  const fitting = withinBudget(hits, maxTokens, ({ text, path }) => estimateTokens(text) + estimateTokens(path) + 10);
  return { hits: fitting, leftOut: hits.length - fitting.length };
}
