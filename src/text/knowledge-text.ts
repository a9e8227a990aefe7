import { normaliseError } from "./normalise-error.ts";

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
