import type { Anchored } from "./anchor.ts";
import { framedHash } from "./ids.ts";
import { LIMITS } from "./limits.ts";

export const KNOWLEDGE_KINDS = ["skill", "remediation", "troubleshooting", "faq"] as const;
/** The kind of a knowledge record. */
export type KnowledgeKind = (typeof KNOWLEDGE_KINDS)[number];

/** A knowledge record. */
export interface Knowledge extends KnowledgeContent, Anchored {
  /** Unique within the database; the caller may choose it. */
  readonly id: string;
  /** The hash of the content. */
  readonly contentHash: string;
  /** Counts of uses and successes; only feedback changes them. */
  readonly successes: number;
  readonly uses: number;
  /** Reports that the record is outdated, since its last edit. */
  readonly outdated: number;
  /** The import that owns the record, or "" if it was saved by hand. */
  readonly source: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The sort key of lists: `createdAt`, unless that was in the future. */
  readonly createdOrder: string;
  /** Starts at 1 and increments with each edit, not with feedback. */
  readonly revision: number;
}

/**
 * The content of a knowledge record, without its counts. A new field also needs: `knowledgeHash` below, `model/stored-record.ts`,
 * `knowledge-schema.ts`, `project-schema.ts` and `WRITTEN` of both stores, `migrate/shapes.ts`, `text/knowledge-text.ts`, and
 * `service`, `operations`, `import`, `read-records` and `restore` in `knowledge/`. See docs/ARCHITECTURE.md.
 */
export interface KnowledgeContent {
  readonly kind: KnowledgeKind;
  readonly category: string;
  readonly subcategory: string;
  readonly question: string;
  readonly answer: string;
}

/** The free texts of knowledge with their limits in characters. Secrets are removed from them. */
export const KNOWLEDGE_TEXTS = {
  category: LIMITS.categoryChars,
  subcategory: LIMITS.categoryChars,
  question: LIMITS.questionChars,
  answer: LIMITS.answerChars,
} as const;

export function knowledgeHash({ kind, category, subcategory, question, answer }: KnowledgeContent): string {
  return framedHash(kind, category, subcategory, question, answer);
}

/** Laplace-smoothed success rate; 0.5 without feedback. */
export function successRate({ successes, uses }: { readonly successes: number; readonly uses: number }): number {
  return (successes + 1) / (uses + 2);
}

/** Returns the record after one use. */
export function countUse(record: Knowledge, { success, outdated }: { readonly success: boolean; readonly outdated: boolean }): Knowledge {
  const { uses, successes, outdated: before } = record;
  return { ...record, uses: uses + 1, successes: successes + (success ? 1 : 0), outdated: before + (outdated ? 1 : 0) };
}
