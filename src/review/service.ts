import type { CallOptions, Checkpoints } from "../checkpoints/service.ts";
import { chooseStale } from "../freshness/judge.ts";
import type { KnowledgeBase } from "../knowledge/service.ts";
import type { Anchor, Freshness, WithCodePath } from "../model/anchor.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";

/** The kind of a record under review. */
export const REVIEWED = ["checkpoint", "knowledge"] as const;
export type Reviewed = (typeof REVIEWED)[number];

/** What a reviewer decides: the record is still right, it is corrected, or it is removed. */
export const REVIEW_ACTIONS = ["keep", "update", "retire"] as const;
export type ReviewAction = (typeof REVIEW_ACTIONS)[number];

/** A record that may no longer be right. */
export interface ReviewItem {
  readonly collection: Reviewed;
  readonly id: string;
  /** The summary of a checkpoint, or the question of a knowledge record. */
  readonly title: string;
  /** Reported uses of a knowledge record; 0 for a checkpoint. */
  readonly uses: number;
  readonly outdated: number;
  readonly anchors: readonly Anchor[];
  readonly supersededBy: string;
  readonly freshness?: Freshness | undefined;
  /** Why it is listed; absent for a record that needs no review. */
  readonly reason?: string | undefined;
  readonly updatedAt: string;
}

export interface ReviewList {
  /** Stale records, the most used first, then the newest. */
  readonly records: readonly ReviewItem[];
  /** Stale records among the `scanned` newest ones. */
  readonly total: number;
  readonly scanned: number;
}

export interface ListReviews extends WithCodePath {
  readonly projectPath: string;
  readonly limit?: number | undefined;
  /** Returns every anchored record, for a caller that compares them with the working tree itself. */
  readonly all?: boolean | undefined;
}

export interface ResolveReview extends WithCodePath {
  readonly projectPath: string;
  readonly collection: Reviewed;
  readonly id: string;
  readonly action: ReviewAction;
  /** New texts of an update: summary and description of a checkpoint, question and answer of a knowledge record. */
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly question?: string | undefined;
  readonly answer?: string | undefined;
  readonly anchors?: readonly string[] | undefined;
}

/** Finds records that no longer match the code, and settles them. */
export interface Reviews {
  list(input: ListReviews, options?: CallOptions): Promise<ReviewList>;
  resolve(input: ResolveReview, options?: CallOptions): Promise<{ readonly id: string; readonly action: ReviewAction }>;
}

export function reviews({
  checkpoints,
  knowledge,
}: {
  readonly checkpoints: Pick<Checkpoints, "list" | "update" | "delete">;
  readonly knowledge: Pick<KnowledgeBase, "list" | "update" | "delete">;
}): Reviews {
  return {
    async list({ projectPath, codePath, limit = LIMITS.listDefault, all = false }, { signal } = {}) {
      const records: ReviewItem[] = [];
      const pages = [
        readPages(async (cursor) => {
          const page = await checkpoints.list({ projectPath, codePath, limit: LIMITS.listMax, cursor });
          return {
            ...page,
            items: page.checkpoints.map((one) => ({ ...one, collection: "checkpoint" as const, title: one.summary, uses: 0, outdated: 0 })),
          };
        }, signal),
        readPages(async (cursor) => {
          const page = await knowledge.list({ projectPath, codePath, scope: "project", limit: LIMITS.listMax, cursor });
          return {
            ...page,
            items: page.records.map((one) => ({ ...one, collection: "knowledge" as const, title: firstLine(one.question) })),
          };
        }, signal),
      ];
      let scanned = 0;
      for (const page of pages)
        for await (const item of page) {
          scanned++;
          if (item.anchors.length > 0 || item.supersededBy || item.outdated > 0) records.push(item);
        }
      if (all) return { records, total: records.length, scanned };
      const stale = chooseStale(records);
      return { records: stale.slice(0, limit), total: stale.length, scanned };
    },

    async resolve({ projectPath, codePath, collection, id, action, summary, description, question, answer, anchors }, { signal } = {}) {
      const given = collection === "checkpoint" ? { summary, description } : { question, answer };
      const isEmpty = Object.values(given).every((text) => text === undefined);
      if (action === "update" && isEmpty)
        throw new CairnError("invalid_input", `update needs a new text: ${Object.keys(given).join(" or ")}. Or keep or retire the record.`);
      if (action === "retire") {
        const { deleted } = await (collection === "checkpoint"
          ? checkpoints.delete({ projectPath, id })
          : knowledge.delete({ projectPath, id }));
        if (!deleted)
          throw new CairnError(
            "not_found",
            `No ${collection} ${JSON.stringify(id)} in this project. Use review_list to see what to review.`,
          );
        return { id, action };
      }
      const change = action === "update" ? given : {};
      if (collection === "checkpoint") await checkpoints.update({ projectPath, codePath, id, anchors, ...change }, { signal });
      else await knowledge.update({ projectPath, codePath, id, anchors, ...change }, { signal });
      return { id, action };
    },
  };
}

/** Reads pages up to the limit of a review. */
async function* readPages<Item>(
  read: (cursor: string | undefined) => Promise<{ readonly items: readonly Item[]; readonly nextCursor?: string | undefined }>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item> {
  let cursor: string | undefined;
  let count = 0;
  do {
    signal?.throwIfAborted();
    const page = await read(cursor);
    yield* page.items;
    count += page.items.length;
    cursor = page.nextCursor;
  } while (cursor !== undefined && count < LIMITS.reviewRecords);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
