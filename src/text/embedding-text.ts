import type { Chunk } from "../model/code-chunk.ts";
import { normaliseError } from "./normalise-error.ts";

/** What is embedded of a checkpoint: the summary carries the key ideas, the description the rest. Context pairs are too noisy. */
export function checkpointText({ summary, description }: { readonly summary: string; readonly description: string }): string {
  return description ? `${summary}\n\n${description}` : summary;
}

/** What is embedded of knowledge: the question alone, since that is what people ask again. Answers are found by their words. */
export function knowledgeText({ kind, question }: { readonly kind: string; readonly question: string }): string {
  return kind === "remediation" ? normaliseError(question) || question : question;
}

/** The words under which knowledge is found. A remediation's error counts both as it was and without what changes each time. */
export function knowledgeWords(content: {
  readonly kind: string;
  readonly category: string;
  readonly subcategory: string;
  readonly question: string;
  readonly answer: string;
}): string {
  const { kind, category, subcategory, question, answer } = content;
  return [question, ...(kind === "remediation" ? [normaliseError(question)] : []), answer, category, subcategory].join("\n");
}

/** Returns the text to embed for a chunk: its path and names, then its text. The prefix lets a query match by name and place. */
export function chunkText(path: string, chunk: Pick<Chunk, "kind" | "name" | "parents" | "defines" | "text">): string {
  const names = chunk.name ? [[...chunk.parents, chunk.name].join(".")] : chunk.defines.slice(0, 8);
  const label = names.length > 0 ? `${chunk.kind} ${names.join(", ")}` : "";
  return [path, label, chunk.text.trim()].filter((part) => part !== "").join("\n");
}
