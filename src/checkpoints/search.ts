import type { WithCodePath } from "../model/anchor.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore } from "../ports/checkpoint-store.ts";
import type { Match } from "../recall/fuse.ts";
import { type Hit, readRecordHits } from "../recall/record-hits.ts";
import { type SearchDeps, type SearchMode, searchRecords, type Weights } from "../recall/search.ts";

export interface CheckpointQuery extends CheckpointFilter {
  readonly query: string;
  readonly topK?: number | undefined;
  readonly mode?: SearchMode | undefined;
  /** Returns only records that match the code. */
  readonly freshOnly?: boolean | undefined;
}

export interface SearchCheckpoints extends CheckpointQuery, WithCodePath {
  readonly projectPath: string;
}

export interface CheckpointAnswer {
  readonly hits: readonly Hit<Checkpoint>[];
  /** How well the best checkpoints answer the query. */
  readonly match: Match;
  /** How both rankings were weighted, and why; absent where one ranking stood alone. */
  readonly weights?: Weights | undefined;
  /** What the search had to do without; empty when nothing was missing. */
  readonly degraded: readonly string[];
  /** Records that were found and cannot be read. */
  readonly damaged: readonly DamagedRecord[];
  /** The model of the semantic ranking. */
  readonly model?: string | undefined;
}

/** Searches the checkpoints of one project. */
export async function searchProject(
  deps: SearchDeps,
  store: CheckpointStore,
  { projectPath, query, topK = 5, mode, ...filter }: SearchCheckpoints,
  signal: AbortSignal | undefined,
): Promise<CheckpointAnswer> {
  const { version, ...answer } = await searchRecords(deps, {
    ...{ collection: "checkpoints", database: projectPath, store, query, filter, topK, mode, signal },
    rescoreAndRead: (ranking) =>
      readRecordHits(store, ranking, {
        topK,
        textOf: checkpointText,
        belong: inOneSession,
        newest: async () => {
          const page = await store.list({ filter: ranking.filter, limit: NEWEST, offset: 0, sortBy: "created_at" });
          return page.checkpoints.map(({ id }) => id);
        },
      }),
  });
  return { ...answer, model: version?.model };
}

/** Newest checkpoints that a query about the state of the work considers. */
const NEWEST = 10;
/** Milliseconds between two saves of one session. */
const SESSION_GAP_MS = 60 * 60_000;

/** Returns whether two checkpoints that were saved one after the other are of one session, by its id where both have one. */
function inOneSession(a: Checkpoint, b: Checkpoint): boolean {
  const [first, second] = [a.context.session_id, b.context.session_id];
  if (first !== undefined && second !== undefined && first !== second) return false;
  return Math.abs(Date.parse(a.createdOrder) - Date.parse(b.createdOrder)) <= SESSION_GAP_MS;
}
