import { chunkText } from "../model/code-index.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { CodeFilter, CodeStore } from "../ports/code-store.ts";
import { type SearchDeps, searchRecords } from "../recall/search.ts";
import { type CodeAnswer, type ProjectCode, toHits } from "./search.ts";

export type SimilarQuery = CodeFilter & { readonly topK?: number | undefined } & (
    | { readonly text: string }
    | { readonly path: string; readonly line: number }
  );

/** Characters of the text that are embedded: enough for any chunk, and models read no more. */
const MAX_CHARS = 20_000;

/** Finds the chunks nearest to a text or to the chunk at a line, by cosine alone: a test that resembles a test is wanted here. */
export async function similarCode(
  deps: SearchDeps,
  { projectPath, store }: ProjectCode,
  query: SimilarQuery,
  signal: AbortSignal | undefined,
): Promise<CodeAnswer> {
  const { topK = LIMITS.listDefault, languages, kinds, glob, changedSince } = query;
  const self = "path" in query ? await chunkAt(store, query.path, query.line) : undefined;
  const text = self ? chunkText(self.path, self) : "text" in query ? query.text : "";
  const { hits, match, degraded, version } = await searchRecords(deps, {
    ...{ collection: "code", database: projectPath, store, signal },
    query: text,
    rewrite: (redacted) => redacted.slice(0, MAX_CHARS),
    filter: { languages, kinds, glob, changedSince },
    mode: "semantic",
    topK: topK + 1,
    async rescoreAndRead({ order, found }) {
      const nearest = order.filter(({ id }) => id !== self?.id).slice(0, topK);
      const scores = new Map(nearest.map(({ id, score }) => [id, Math.max(0, score)]));
      const chunks = await store.getMany([...scores.keys()]);
      const ranked = chunks.map((chunk) => ({ chunk, score: scores.get(chunk.id)! }));
      return { hits: await toHits(store, ranked, found, 0), incomplete: chunks.length < nearest.length };
    },
  });
  return { hits, match, degraded, model: version?.model, omitted: 0 };
}

async function chunkAt(store: CodeStore, path: string, line: number) {
  const chunk = (await store.chunksOf(path)).find(({ startLine, endLine }) => startLine <= line && line <= endLine);
  if (!chunk)
    throw new CairnError("not_found", `Line ${line} of ${JSON.stringify(path)} is not in the index. Find the code with code_search.`);
  return chunk;
}
