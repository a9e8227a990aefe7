import type { KnowledgeContent } from "../model/knowledge.ts";
import type { Redact } from "../text/redact.ts";

/** What was taken out of a field; never the value itself. */
export interface RedactedField {
  readonly field: string;
  readonly kind: string;
  readonly count: number;
}

const FIELDS = ["category", "subcategory", "question", "answer"] as const;

/** The content without secrets, and which there were. */
export function redactContent<Content extends Partial<{ [Field in keyof KnowledgeContent]: KnowledgeContent[Field] | undefined }>>(
  content: Content,
  redact: Redact,
): { readonly content: Content; readonly redacted: readonly RedactedField[] } {
  const clean: Record<string, unknown> = { ...content };
  const redacted: RedactedField[] = [];
  for (const field of FIELDS) {
    const given = content[field];
    if (given === undefined) continue;
    const { text, found } = redact(given);
    clean[field] = text;
    redacted.push(...found.map(({ kind, count }) => ({ field, kind, count })));
  }
  return { content: clean as Content, redacted };
}
