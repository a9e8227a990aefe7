import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { CodeFilter, CodeStore } from "../ports/code-store.ts";
import type { Embedders } from "../ports/embedders.ts";
import { fusedCandidates } from "../recall/search.ts";
import { embeddingText } from "../text/code/embedding-text.ts";
import { type CodeAnswer, toHits } from "./search.ts";

export type SimilarQuery = CodeFilter & { readonly topK?: number | undefined } & (
    | { readonly text: string }
    | { readonly path: string; readonly line: number }
  );

/** Long enough for any chunk; the model reads no more in any case. */
const MAX_CHARS = 20_000;

/** Nearest by meaning, without the ranking of a search: a test that resembles a test is what is asked for. */
export async function similarCode(
  store: CodeStore,
  embedders: Embedders,
  query: SimilarQuery,
  signal: AbortSignal | undefined,
): Promise<CodeAnswer> {
  const { topK = LIMITS.listDefault, languages, kinds, glob, changedSince } = query;
  const self = "path" in query ? await chunkAt(store, query.path, query.line) : undefined;
  const text = (self ? embeddingText(self.path, self) : "text" in query ? query.text : "").slice(0, MAX_CHARS);
  const filter = { languages, kinds, glob, changedSince };
  const { order, found, degraded, model } = await fusedCandidates(store, embedders, {
    query: text,
    topK: topK + 1,
    filter,
    mode: "semantic",
    signal,
  });
  const scores = new Map(order.map(({ id, score }) => [id, score]));
  const wanted = order.map(({ id }) => id).filter((id) => id !== self?.id);
  const chunks = await store.getMany(wanted.slice(0, topK));
  const ranked = chunks.map((chunk) => ({ chunk, score: Math.max(0, scores.get(chunk.id)!) }));
  return { hits: await toHits(store, ranked, found, 0), degraded, model, leftOut: 0 };
}

async function chunkAt(store: CodeStore, path: string, line: number) {
  const chunk = (await store.chunksOf(path)).find(({ startLine, endLine }) => startLine <= line && line <= endLine);
  if (!chunk) throw new CairnError("not_found", `There is no line ${line} of ${JSON.stringify(path)} in the index.`);
  return chunk;
}
