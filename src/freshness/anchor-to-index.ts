import type { Anchor } from "../model/anchor.ts";
import { LIMITS } from "../model/limits.ts";
import type { CodeStore } from "../ports/code-store.ts";
import { storedAnchor } from "./anchor-text.ts";
import { definitionHash } from "./definition-text.ts";
import type { AnchorCandidate } from "./recognise.ts";

type Index = Pick<CodeStore, "filesAt" | "definitions" | "chunksOf">;

/** Lines of a definition that are hashed. A longer one is generated code or a whole module, which its file stands for. */
const DEFINITION_LINES = 2_000;

/**
 * Fills in the hashes of files and definitions from the code index. Drops optional anchors that are not found. A symbol that several
 * files define is anchored only if the other anchors name exactly one of them. Of several definitions in one file the longest counts:
 * the others are declarations.
 */
export async function anchorToIndex(index: Index | undefined, candidates: readonly AnchorCandidate[]): Promise<Anchor[]> {
  const anchored: Anchor[] = [];
  const paths = candidates.filter(({ kind, hash }) => kind === "file" && hash === undefined).map(({ value }) => value);
  const files = new Map((index && paths.length > 0 ? await index.filesAt(paths) : []).map((file) => [file.path, file]));
  const named = new Set(candidates.filter(({ kind }) => kind === "file").map(({ value }) => value));
  const names = candidates.filter(({ kind, hash }) => kind === "symbol" && hash === undefined).map(({ value }) => value);
  const sites = index && names.length > 0 ? await index.definitions(names, {}, LIMITS.anchorCandidates * 10) : [];
  for (const candidate of candidates) {
    if (anchored.length >= LIMITS.anchors) break;
    const found = candidate.hash === undefined ? await find(candidate) : candidate;
    if (found) anchored.push(storedAnchor(found));
  }
  return anchored;

  async function find(candidate: AnchorCandidate): Promise<AnchorCandidate | undefined> {
    const missing = candidate.optional ? undefined : candidate;
    if (candidate.kind === "file") {
      const file = files.get(candidate.value);
      return file ? { ...candidate, hash: file.contentHash, generation: file.generation } : missing;
    }
    if (candidate.kind !== "symbol") return missing;
    const all = sites.filter(({ name, path }) => name === candidate.value && (candidate.path === undefined || path === candidate.path));
    const mentioned = all.filter(({ path }) => named.has(path));
    const [site, ...others] = (mentioned.length > 0 ? mentioned : all).sort((a, b) => b.endLine - b.line - (a.endLine - a.line));
    if (!index || !site || others.some(({ path }) => path !== site.path) || site.endLine - site.line >= DEFINITION_LINES) return missing;
    const chunks = await index.chunksOf(site.path, range(site.line, site.endLine));
    const lines = linesOf(chunks, site.line, site.endLine);
    const [chunk] = chunks;
    if (!lines || !chunk) return missing;
    const hash = definitionHash(lines, 1, lines.length);
    return { ...candidate, path: site.path, hash, content: chunk.contentHash, lines: lines.length, generation: chunk.generation };
  }
}

/** Returns the lines of a range from the chunks that contain them, or `undefined` if one is missing. */
export function linesOf(
  chunks: readonly { readonly startLine: number; readonly text: string }[],
  from: number,
  to: number,
): string[] | undefined {
  const lines = new Map<number, string>();
  for (const { startLine, text } of chunks)
    for (const [index, line] of text.split("\n").entries())
      if (!lines.has(startLine + index) || line !== "") lines.set(startLine + index, line);
  const wanted = range(from, to).map((line) => lines.get(line));
  return wanted.every((line) => line !== undefined) ? (wanted as string[]) : undefined;
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
