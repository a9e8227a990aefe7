import { CairnError } from "../../../model/errors.ts";
import type { RepairReport } from "./rebuild.ts";
import { scanThread } from "./scan-thread.ts";
import type { VectorHit } from "./search.ts";
import { unit } from "./writer.ts";

export interface VectorSearch {
  readonly collection: string;
  readonly versionId: number;
  readonly query: Float32Array;
  readonly limit: number;
  /** Restricts the search to these keys, in any order. Absent: all keys. Empty: no hits. */
  readonly allow?: Int32Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds the nearest vectors of a file in a separate thread. Sees every commit that any process made before the call. */
export interface VectorSearcher {
  /** Returns hits, best first. A missing version has no vectors. */
  search(search: VectorSearch): Promise<readonly VectorHit[]>;
  /** Builds the IVF lists of a large collection now instead of in the background. */
  buildLists(collection: string, versionId: number): Promise<void>;
  close(): void;
}

export interface VectorSearcherOptions {
  readonly path: string;
  /** From this many vectors on, a search without a filter scans only the lists near the query. */
  readonly listsAbove?: number;
  /** Called when damaged codes were rebuilt. */
  readonly onRepair?: ((report: RepairReport) => void) | undefined;
}

/** Below this number of vectors, a full scan costs at most 5 ms of CPU at 384 dimensions. */
const LISTS_ABOVE = 100_000;
const SEARCH_LIMIT_MAX = 1_000;
/** Takes 48 MB for the time of the search. */
const FILTER_MAX = 4_000_000;

export function vectorSearcher({ path, listsAbove = LISTS_ABOVE, onRepair }: VectorSearcherOptions): VectorSearcher {
  return {
    async search({ collection, versionId, query, limit, allow, signal }) {
      if (!Number.isInteger(limit) || limit < 1 || limit > SEARCH_LIMIT_MAX)
        throw new CairnError("invalid_input", `A search returns 1 to ${SEARCH_LIMIT_MAX} vectors, not ${limit}.`);
      // Copied below: a message carries the whole buffer of a view, however large.
      const vector = unit("the query", query, query.length);
      if (allow && allow.length > FILTER_MAX)
        throw new CairnError("too_large", `A filter holds at most ${FILTER_MAX} keys, not ${allow.length}.`);
      if (allow?.length === 0) return [];
      const task = { kind: "search", vector: vector.slice(), limit, allow: allow && sortUnique(allow) } as const;
      const { hits, repair } = await scanThread.ask({ path, collection, versionId, listsAbove, task }, signal);
      if (repair) onRepair?.(repair);
      return hits;
    },
    async buildLists(collection, versionId) {
      await scanThread.ask({ path, collection, versionId, listsAbove, task: { kind: "buildLists" } });
    },
    close() {
      scanThread.close(path);
    },
  };
}

/** Returns a copy, ascending and without duplicates. */
function sortUnique(keys: Int32Array): Int32Array {
  let sorted = true;
  for (let i = 1; i < keys.length && sorted; i++) sorted = keys[i - 1]! < keys[i]!;
  return sorted ? keys.slice() : Int32Array.from(new Set(keys.toSorted()));
}
