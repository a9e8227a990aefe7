import type { KnowledgeContent } from "../model/knowledge.ts";
import type { Redact } from "../text/redact.ts";

/** Secrets removed from a field; never their values. */
export interface RedactedField {
  readonly field: string;
  readonly kind: string;
  readonly count: number;
}

const FIELDS = ["category", "subcategory", "question", "answer"] as const;

/** Removes secrets from the content and reports them. */
export function redactContent<Content extends Partial<{ [Field in keyof KnowledgeContent]: KnowledgeContent[Field] | undefined }>>(
  content: Content,
  redact: Redact,
): { readonly content: Content; readonly redacted: readonly RedactedField[] } {
  const clean: Record<string, unknown> = { ...content };
  const redacted: RedactedField[] = [];
  for (const field of FIELDS) {
    const value = content[field];
    if (value === undefined) continue;
    const { text, found } = redact(value);
    clean[field] = text;
    redacted.push(...found.map(({ kind, count }) => ({ field, kind, count })));
  }
  return { content: clean as Content, redacted };
}
