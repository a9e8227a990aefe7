import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { VECTOR_SCHEMA } from "../../src/stores/sqlite/vectors/schema.ts";
import { type VectorSearcher, vectorSearcher } from "../../src/stores/sqlite/vectors/searcher.ts";
import { vectorWriter } from "../../src/stores/sqlite/vectors/writer.ts";
import type { Candidate } from "./measure.ts";

export interface CairnVectors extends Candidate {
  /** Builds the IVF lists now. */
  buildLists(): Promise<void>;
  /** Like `search`, with a scan of all vectors. */
  scan(vector: Float32Array, limit: number): Promise<readonly number[]>;
  /** Drops all caches, as in a new process. */
  forget(): void;
}

/** Opens our own store. Without `listsAbove` it has the default of the product. */
export async function cairnVectors(path: string, listsAbove?: number): Promise<CairnVectors> {
  const database = await openSqlite({ path, schema: { version: 1, name: "vectors", sql: VECTOR_SCHEMA } });
  const onRepair = ({ reason }: { reason: string }) => {
    throw new Error(`The codes were damaged: ${reason}`);
  };
  const usual = vectorSearcher({ path, onRepair, ...(listsAbove !== undefined && { listsAbove }) });
  const scanning = vectorSearcher({ path, onRepair, listsAbove: Number.MAX_SAFE_INTEGER });
  const search = async (searcher: VectorSearcher, query: Float32Array, limit: number, allow?: Int32Array) => {
    const hits = await searcher.search({ collection: "bench", versionId: 1, query, limit, allow });
    return hits.map(({ key }) => key);
  };
  return {
    add: (entries) => database.write((tx) => vectorWriter(tx).put("bench", 1, entries)),
    remove: (keys) => database.write((tx) => vectorWriter(tx).remove("bench", 1, keys)),
    search: (query, limit) => search(usual, query, limit),
    searchAllowed: (query, limit, keys) => search(usual, query, limit, keys),
    scan: (query, limit) => search(scanning, query, limit),
    buildLists: () => usual.buildLists("bench", 1),
    forget: () => usual.close(),
    close() {
      usual.close();
      database.close();
    },
  };
}
