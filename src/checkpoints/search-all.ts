import type { Checkpoint } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { asCairnError } from "../model/errors.ts";
import { newestFirst } from "../model/record-order.ts";
import type { CheckpointFilter } from "../ports/checkpoint-store.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { Storage } from "../ports/storage.ts";
import { type Hit, type RecallAnswer, recall, type SearchMode } from "../recall/search.ts";

export interface SearchAllCheckpoints extends CheckpointFilter {
  readonly query: string;
  readonly topK?: number | undefined;
  readonly mode?: SearchMode | undefined;
  /** Which projects the caller may see. Whoever forgets it sees none. */
  readonly mayTouch: (projectPath: string) => boolean;
}

export interface SearchAllAnswer {
  readonly hits: readonly Hit<Checkpoint>[];
  readonly degraded: readonly string[];
  /** Records that were found and could not be read. */
  readonly damaged: readonly (DamagedRecord & { readonly projectPath: string })[];
  /** How many projects were searched. */
  readonly projects: number;
  /** `score` where all vectors are of one model; else `rank`, because scores of two models cannot be compared. */
  readonly mergedBy: "score" | "rank";
}

/** Each search opens a database and scans vectors; more at once would only wait for each other. */
const AT_ONCE = 4;

/** One search per project, side by side, and one list of their answers. A project that fails is named and costs the others nothing. */
export async function searchAll(
  storage: Storage,
  embedders: Embedders,
  { mayTouch, topK = 5, query, mode, ...filter }: SearchAllCheckpoints,
  signal: AbortSignal | undefined,
): Promise<SearchAllAnswer> {
  const paths = (await storage.projects()).filter((path) => mayTouch(path));
  const answers: RecallAnswer<Checkpoint>[] = [];
  const degraded = new Set<string>();
  const damaged: (DamagedRecord & { readonly projectPath: string })[] = [];
  const waiting = [...paths];
  const work = async () => {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      signal?.throwIfAborted();
      try {
        const project = await storage.find(path);
        if (!project) continue;
        const answer = await recall(project.checkpoints, embedders, { query, topK, mode, filter, signal });
        answers.push(answer);
        damaged.push(...answer.damaged.map((record) => ({ ...record, projectPath: path })));
        for (const part of answer.degraded) degraded.add(part);
      } catch (error) {
        signal?.throwIfAborted();
        degraded.add(`${path} could not be searched (${asCairnError(error).message})`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const models = new Set(answers.filter(({ hits }) => hits.length > 0).map(({ model }) => model));
  const mergedBy = models.size === 1 && !models.has(undefined) ? "score" : "rank";
  return { hits: merge(answers, mergedBy).slice(0, topK), degraded: [...degraded], damaged, projects: paths.length, mergedBy };
}

function merge(answers: readonly RecallAnswer<Checkpoint>[], by: "score" | "rank"): Hit<Checkpoint>[] {
  return answers
    .flatMap(({ hits }) => hits.map((hit, rank) => ({ hit, rank })))
    .sort(
      (a, b) =>
        (by === "score" ? b.hit.score - a.hit.score || a.rank - b.rank : a.rank - b.rank) ||
        newestFirst(placeOf(a.hit.record), placeOf(b.hit.record)),
    )
    .map(({ hit }) => hit);
}

const placeOf = ({ id, createdOrder }: Checkpoint) => ({ id, at: createdOrder });
