import type { WithCodePath } from "../model/anchor.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { asCairnError } from "../model/errors.ts";
import { newestFirst } from "../model/record-order.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore } from "../ports/checkpoint-store.ts";
import type { Storage } from "../ports/storage.ts";
import { bestMatch, type Match } from "../recall/fuse.ts";
import { type Hit, listPosition, readRecordHits } from "../recall/record-hits.ts";
import { type SearchDeps, type SearchMode, searchRecords, type Weights } from "../recall/search.ts";

interface CheckpointQuery extends CheckpointFilter {
  readonly query: string;
  readonly topK?: number | undefined;
  readonly mode?: SearchMode | undefined;
  /** Returns only records that match the code. */
  readonly freshOnly?: boolean | undefined;
}

export interface SearchCheckpoints extends CheckpointQuery, WithCodePath {
  readonly projectPath: string;
}

export interface SearchAllCheckpoints extends CheckpointQuery {
  /** Decides which projects the caller may see. */
  readonly mayTouch: (projectPath: string) => boolean;
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

export interface SearchAllAnswer extends Omit<CheckpointAnswer, "damaged" | "model" | "weights"> {
  readonly damaged: readonly (DamagedRecord & { readonly projectPath: string })[];
  /** Projects searched. */
  readonly projects: number;
  /** `score` where one model made all vectors; else `rank`, because scores of two models cannot be compared. */
  readonly mergedBy: "score" | "rank";
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

/** Projects searched at the same time. Each search opens a database and scans vectors, so more would only wait for each other. */
const CONCURRENCY = 4;

/** Searches every project that the caller may see and merges the answers. A project that fails is reported in `degraded`. */
export async function searchAllProjects(
  storage: Storage,
  deps: SearchDeps,
  { mayTouch, topK = 5, ...query }: SearchAllCheckpoints,
  signal: AbortSignal | undefined,
): Promise<SearchAllAnswer> {
  const paths = (await storage.projects()).filter((path) => mayTouch(path));
  const answers: CheckpointAnswer[] = [];
  const degraded = new Set<string>();
  const damaged: (DamagedRecord & { readonly projectPath: string })[] = [];
  const waiting = [...paths];
  const work = async () => {
    for (let projectPath = waiting.shift(); projectPath !== undefined; projectPath = waiting.shift()) {
      signal?.throwIfAborted();
      try {
        const project = await storage.find(projectPath);
        if (!project) continue;
        const answer = await searchProject(deps, project.checkpoints, { ...query, projectPath, topK }, signal);
        answers.push(answer);
        for (const record of answer.damaged) damaged.push({ ...record, projectPath });
        for (const reason of answer.degraded) degraded.add(reason);
      } catch (error) {
        signal?.throwIfAborted();
        degraded.add(`${projectPath} could not be searched (${asCairnError(error).message})`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const models = new Set(answers.filter(({ hits }) => hits.length > 0).map(({ model }) => model));
  const mergedBy = models.size === 1 && !models.has(undefined) ? "score" : "rank";
  const match = bestMatch(answers.map((answer) => answer.match));
  return { hits: merge(answers, mergedBy).slice(0, topK), match, degraded: [...degraded], damaged, projects: paths.length, mergedBy };
}

function merge(answers: readonly CheckpointAnswer[], by: "score" | "rank"): Hit<Checkpoint>[] {
  return answers
    .flatMap(({ hits }) => hits.map((hit, rank) => ({ hit, rank })))
    .sort(
      (a, b) =>
        (by === "score" ? b.hit.score - a.hit.score || a.rank - b.rank : a.rank - b.rank) ||
        newestFirst(listPosition(a.hit.record), listPosition(b.hit.record)),
    )
    .map(({ hit }) => hit);
}
