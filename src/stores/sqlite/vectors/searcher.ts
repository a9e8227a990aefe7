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
  /** Only these keys, in any order; left out, all. An empty one finds nothing. */
  readonly allow?: Int32Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds the nearest vectors of a file, off the main thread. Sees whatever any process has committed before the call. */
export interface VectorSearcher {
  /** Best first. A version that does not exist has no vectors. */
  search(search: VectorSearch): Promise<readonly VectorHit[]>;
  /** Sorts a large collection into lists now; otherwise that happens by itself in the background. */
  arrange(collection: string, versionId: number): Promise<void>;
  close(): void;
}

export interface VectorSearcherOptions {
  readonly path: string;
  /** From this many vectors on, searches without filter look only into the lists near the query. */
  readonly listsAbove?: number;
  /** Told when codes turned out to be damaged and were made again. */
  readonly onRepair?: ((report: RepairReport) => void) | undefined;
}

/** Below this a scan of everything costs no more than 5 ms of CPU at 384 dimensions. */
const LISTS_ABOVE = 100_000;
const SEARCH_LIMIT_MAX = 1_000;
/** Takes 48 MB for the time of the search. */
const FILTER_MAX = 4_000_000;

export function vectorSearcher({ path, listsAbove = LISTS_ABOVE, onRepair }: VectorSearcherOptions): VectorSearcher {
  return {
    async search({ collection, versionId, query, limit, allow, signal }) {
      if (!Number.isInteger(limit) || limit < 1 || limit > SEARCH_LIMIT_MAX)
        throw new CairnError("invalid_input", `A search gives 1 to ${SEARCH_LIMIT_MAX} vectors, not ${limit}.`);
      // Copied below: a message takes along the whole buffer of a view, however large.
      const vector = unit("the query", query, query.length);
      if (allow && allow.length > FILTER_MAX)
        throw new CairnError("too_large", `A filter holds at most ${FILTER_MAX} keys, not ${allow.length}.`);
      if (allow?.length === 0) return [];
      const task = { kind: "search", vector: vector.slice(), limit, allow: allow && ascending(allow) } as const;
      const { hits, repair } = await scanThread.ask({ path, collection, versionId, listsAbove, task }, signal);
      if (repair) onRepair?.(repair);
      return hits;
    },
    async arrange(collection, versionId) {
      await scanThread.ask({ path, collection, versionId, listsAbove, task: { kind: "arrange" } });
    },
    close() {
      scanThread.close(path);
    },
  };
}

/** A copy, in order and each key once. */
function ascending(keys: Int32Array): Int32Array {
  let sorted = true;
  for (let i = 1; i < keys.length && sorted; i++) sorted = keys[i - 1]! < keys[i]!;
  return sorted ? keys.slice() : Int32Array.from(new Set(keys.toSorted()));
}
