import type { Chunk } from "../model/code-chunk.ts";
import { normaliseError } from "./normalise-error.ts";

/** Returns the text to embed for a checkpoint: summary and description. Context pairs are too noisy. */
export function checkpointText({ summary, description }: { readonly summary: string; readonly description: string }): string {
  return description ? `${summary}\n\n${description}` : summary;
}

/** Returns the text to embed for knowledge: the question, because that is what people ask again. Answers are found by keyword. */
export function knowledgeText({ kind, question }: { readonly kind: string; readonly question: string }): string {
  return kind === "remediation" ? normaliseError(question) || question : question;
}

/** Returns the text of the full-text index for knowledge. The error of a remediation is indexed both as it is and normalised. */
export function knowledgeTerms(content: {
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
