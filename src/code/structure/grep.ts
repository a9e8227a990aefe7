import { setImmediate as nextTurn } from "node:timers/promises";
import type { CodeChunk } from "../../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../../ports/code-store.ts";
import { excerpt } from "../excerpt.ts";
import type { PatternOptions } from "./line-matcher.ts";

export interface GrepQuery extends Omit<CodeFilter, "kinds">, PatternOptions {
  readonly pattern: string;
  /** Matching lines to return. */
  readonly limit: number;
  /** Lines to show before and after each match. */
  readonly contextLines?: number | undefined;
}

export interface GrepMatch {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** The matching line, with the lines around it if `contextLines` is set. */
  readonly text: string;
  readonly textStartLine: number;
  readonly contentHash: string;
}

export interface GrepAnswer {
  readonly matches: readonly GrepMatch[];
  /** Whether every file of the filter was searched to its end. */
  readonly complete: boolean;
  /** Why the answer is incomplete. */
  readonly reasons: readonly string[];
  /** Files that were searched, and files that may have a match by the full-text index. */
  readonly searchedFiles: number;
  readonly candidateFiles: number;
}

export interface GrepDeps {
  readonly now: () => number;
  /** Milliseconds after which the search returns what it has. */
  readonly timeLimitMs: number;
}

/** Milliseconds of work between two turns of the event loop. */
const SLICE_MS = 8;
/** Characters of a line in the answer; lines of bundles have megabytes. */
const SHOWN_CHARS = 500;

/** Searches the indexed texts line by line, in the order of paths. Stops at the limit and at the time limit, and reports that. */
export async function grep(
  store: Pick<CodeStore, "pathsWith" | "chunksOf">,
  query: GrepQuery,
  { now, timeLimitMs }: GrepDeps,
  signal?: AbortSignal,
): Promise<GrepAnswer> {
  const { pattern, limit, contextLines = 0, fixed, ignoreCase, ...filter } = query;
  const { lineMatcher } = await import("./line-matcher.ts"); // its engine is large, and most processes never search exactly
  const matcher = lineMatcher(pattern, { fixed, ignoreCase });
  const endsAt = now() + timeLimitMs;
  const paths = await store.pathsWith(matcher.words, filter);
  const matches: GrepMatch[] = [];
  let searchedFiles = 0;
  let longLines = 0;
  let sliceEndsAt = now() + SLICE_MS;
  let stopped: "limit" | "time" | undefined;

  const takeTurn = async () => {
    if (now() < sliceEndsAt) return;
    await nextTurn();
    signal?.throwIfAborted();
    sliceEndsAt = now() + SLICE_MS;
    if (now() > endsAt) stopped = "time";
  };
  const searchChunk = async (chunks: readonly CodeChunk[], chunk: CodeChunk) => {
    for (const [index, text] of chunk.text.split("\n").entries()) {
      const start = matcher.find(text.slice(0, matcher.lineChars));
      if (start < 0 && text.length > matcher.lineChars) longLines++;
      if (start >= 0 && matches.length === limit) stopped = "limit";
      else if (start >= 0) matches.push(toMatch(chunks, chunk, { line: chunk.startLine + index, start, text }, contextLines));
      await takeTurn();
      if (stopped) return;
    }
  };

  for (const path of paths) {
    const chunks = await store.chunksOf(path);
    for (const chunk of chunks) if (!stopped && matcher.mayMatch(chunk.text)) await searchChunk(chunks, chunk);
    searchedFiles++;
    await takeTurn();
    if (stopped) break;
  }
  const reasons = [
    ...(stopped === "limit" ? [`there are more than ${limit} matching lines`] : []),
    ...(stopped === "time"
      ? [`the time limit of ${timeLimitMs / 1_000} s was reached after ${searchedFiles} of ${paths.length} files`]
      : []),
    ...(longLines > 0 ? [`${longLines} lines were searched up to character ${matcher.lineChars} only`] : []),
  ];
  return { matches, complete: reasons.length === 0, reasons, searchedFiles, candidateFiles: paths.length };
}

function toMatch(
  chunks: readonly CodeChunk[],
  { path, contentHash }: CodeChunk,
  { line, start, text }: { readonly line: number; readonly start: number; readonly text: string },
  contextLines: number,
): GrepMatch {
  const around = contextLines > 0 ? excerpt(chunks, line - contextLines, line + contextLines) : undefined;
  const shown = around ?? { startLine: line, text };
  return {
    ...{ path, line, column: start + 1, contentHash, textStartLine: shown.startLine },
    text: shown.text
      .split("\n")
      .map((one) => cutLine(one.replace(/\r$/, ""), one === text ? start : 0))
      .join("\n"),
  };
}

/** Cuts a long line around the match. */
function cutLine(line: string, start: number): string {
  if (line.length <= SHOWN_CHARS) return line;
  const from = Math.max(0, Math.min(start - SHOWN_CHARS / 5, line.length - SHOWN_CHARS));
  return `${from > 0 ? "…" : ""}${line.slice(from, from + SHOWN_CHARS)}${from + SHOWN_CHARS < line.length ? "…" : ""}`;
}
