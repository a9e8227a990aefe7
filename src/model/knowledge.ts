import { framedHash } from "./ids.ts";

export const KNOWLEDGE_KINDS = ["skill", "remediation", "troubleshooting", "faq"] as const;
/** The kind of a knowledge record. */
export type KnowledgeKind = (typeof KNOWLEDGE_KINDS)[number];

/** Something worth knowing again: a question, or an error, and what to do. */
export interface Knowledge extends KnowledgeContent {
  /** The template's name, unique within its database; a person may choose it. */
  readonly id: string;
  /** Changes with the content and with nothing else. */
  readonly contentHash: string;
  /** How often it was used and what came of it; only feedback changes these. */
  readonly successes: number;
  readonly uses: number;
  /** The import that owns the record, or "" if it was saved by hand. */
  readonly source: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The time that lists are ordered by: `createdAt`, unless it lay in the future. */
  readonly createdOrder: string;
  /** 1 when new; grows by one with each edit, not with feedback. */
  readonly revision: number;
}

export interface KnowledgeContent {
  readonly kind: KnowledgeKind;
  readonly category: string;
  readonly subcategory: string;
  readonly question: string;
  readonly answer: string;
}

export function knowledgeHash({ kind, category, subcategory, question, answer }: KnowledgeContent): string {
  return framedHash(kind, category, subcategory, question, answer);
}

/** Half at first, then towards what was seen: one lucky use must not outrank a hundred good ones. */
export function successRate({ successes, uses }: { readonly successes: number; readonly uses: number }): number {
  return (successes + 1) / (uses + 2);
}
