import type { CodeChunk } from "../model/code-index.ts";

export interface Excerpt {
  readonly startLine: number;
  readonly endLine: number;
  readonly text: string;
}

/** Returns the lines `from` to `to` of a file, as far as it has them, or `undefined`. `chunks` are those of the file, in order. */
export function excerpt(chunks: readonly CodeChunk[], from: number, to: number): Excerpt | undefined {
  const last = chunks.at(-1)?.endLine ?? 0;
  const startLine = Math.max(1, from);
  const endLine = Math.min(to, last);
  if (startLine > endLine) return undefined;
  let text = "";
  for (const chunk of chunks) {
    if (chunk.endLine < startLine || chunk.startLine > endLine) continue;
    const lines = chunk.text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
    text += lines.slice(Math.max(0, startLine - chunk.startLine), endLine - chunk.startLine + 1).join("");
  }
  return { startLine, endLine, text: text.replace(/\n$/, "") };
}

/** Returns the chunks of the definition that `chunk` is a part of. */
export function wholeDefinition(chunks: readonly CodeChunk[], chunk: CodeChunk): readonly CodeChunk[] {
  const same = (other: CodeChunk | undefined) =>
    other !== undefined && other.name === chunk.name && other.kind === chunk.kind && other.parents.join("\n") === chunk.parents.join("\n");
  if (chunk.name === undefined) return [chunk];
  let first = chunk.index;
  let last = chunk.index;
  while (same(chunks[first - 1])) first--;
  while (same(chunks[last + 1])) last++;
  return chunks.slice(first, last + 1);
}
