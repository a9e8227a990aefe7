import type { CodeChunk } from "../../model/code-index.ts";
import type { CodeStore } from "../../ports/code-store.ts";
import { excerpt } from "../excerpt.ts";

export interface SourceLine {
  readonly text: string;
  readonly language: string;
  /** Hash of the file when it was indexed. */
  readonly contentHash: string;
}

/** Returns a reader of the lines at these sites. It reads each file once, and only the chunks with these lines. Sites are sorted by path. */
export function lineReader(
  store: Pick<CodeStore, "chunksOf">,
  sites: readonly { readonly path: string; readonly line: number }[],
): (path: string, line: number) => Promise<SourceLine> {
  const wanted = new Map<string, number[]>();
  for (const { path, line } of sites) {
    const lines = wanted.get(path);
    if (lines) lines.push(line);
    else wanted.set(path, [line]);
  }
  let last: { path: string; chunks: readonly CodeChunk[] } | undefined;
  return async (path, line) => {
    if (last?.path !== path) last = { path, chunks: await store.chunksOf(path, wanted.get(path)) };
    const { language = "text", contentHash = "" } = last.chunks[0] ?? {};
    return { text: excerpt(last.chunks, line, line)?.text ?? "", language, contentHash };
  };
}
