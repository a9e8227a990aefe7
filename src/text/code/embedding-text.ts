import type { Chunk } from "../../model/code-chunk.ts";

/** What is embedded for a chunk: where it is and what it is called, then its text. The prefix lets a query match by name and place. */
export function embeddingText(path: string, chunk: Pick<Chunk, "kind" | "name" | "parents" | "defines" | "text">): string {
  const names = chunk.name ? [[...chunk.parents, chunk.name].join(".")] : chunk.defines.slice(0, 8);
  const label = names.length > 0 ? `${chunk.kind} ${names.join(", ")}` : "";
  return [path, label, chunk.text.trim()].filter((part) => part !== "").join("\n");
}
