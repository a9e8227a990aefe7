import type { Checkpoint } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { asCairnError } from "../model/errors.ts";
import { NO_TIME } from "../model/no-time.ts";
import { newestFirst } from "../model/record-order.ts";
import type { SearchBound } from "../ports/catalogue.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { VectorSpace } from "../ports/embedding-store.ts";
import type { Storage } from "../ports/storage.ts";
import { bestMatch } from "../recall/fuse.ts";
import { type Hit, listPosition } from "../recall/record-hits.ts";
import { type EmbeddedText, embedText, type SearchDeps, utcTimes } from "../recall/search.ts";
import { forEachParallel } from "../scheduling/for-each-parallel.ts";
import { type CheckpointAnswer, type CheckpointQuery, searchProject } from "./search.ts";

export interface SearchAllCheckpoints extends CheckpointQuery {
  /** Decides which projects the caller may see. */
  readonly mayTouch: (projectPath: string) => boolean;
}

export interface SearchAllAnswer extends Omit<CheckpointAnswer, "damaged" | "model" | "weights"> {
  readonly damaged: readonly (DamagedRecord & { readonly projectPath: string })[];
  /** Projects searched. */
  readonly projects: number;
  /** True if some projects were not searched, so that better checkpoints may exist; `degraded` has the reason. */
  readonly partial: boolean;
  /** `score` where one model made all vectors; else `rank`, because scores of two models cannot be compared. */
  readonly mergedBy: "score" | "rank";
}

/** Projects searched at the same time. Each search opens a database and scans vectors, so more would only wait for each other. */
const CONCURRENCY = 4;
/** Projects that an answer names as not searched. */
const NAMED = 5;

/**
 * Searches every project that the caller may see and merges the answers. Where the storage knows bounds, projects are searched in the
 * order of their bounds, and the search ends when no other project can change the answer. A project that fails is reported.
 */
export async function searchAllProjects(
  storage: Storage,
  deps: SearchDeps,
  { mayTouch, topK = 5, ...query }: SearchAllCheckpoints,
  signal: AbortSignal | undefined,
): Promise<SearchAllAnswer> {
  const paths = (await storage.projects()).filter((path) => mayTouch(path));
  const plan = await planSearch(storage, deps, paths, query, signal);
  const answers: CheckpointAnswer[] = [];
  const degraded = new Set<string>();
  const failed: string[] = [];
  const damaged: (DamagedRecord & { readonly projectPath: string })[] = [];
  let best: readonly RankedHit[] = [];
  const search = async (projectPath: string) => {
    try {
      const project = await storage.find(projectPath);
      if (!project) return;
      const answer = await searchProject(deps, project.checkpoints, { ...query, projectPath, topK }, signal);
      answers.push(answer);
      best = merge([...best, ...rankHits(answer)], plan.mergedBy ?? "rank").slice(0, topK);
      for (const record of answer.damaged) damaged.push({ ...record, projectPath });
      for (const reason of answer.degraded) degraded.add(reason);
    } catch (error) {
      signal?.throwIfAborted();
      failed.push(projectPath);
      degraded.add(`${projectPath} could not be searched (${asCairnError(error).message})`);
    }
  };
  const options = { concurrency: CONCURRENCY, signal };
  const late = [...(await forEachParallel(plan.unbounded, options, search))];
  const isDecided = (bound: SearchBound) => plan.mergedBy !== undefined && best.length >= topK && isBelow(bound, best, plan.mergedBy);
  let next = 0;
  // Bounds only fall, so the first project that cannot contribute ends the search.
  const isDone = () => next < plan.bounded.length && isDecided(plan.bounded[next]!);
  const skipped = await forEachParallel(plan.bounded, { ...options, isDone }, (bound) => {
    next++;
    return search(bound.projectPath);
  });
  late.push(...skipped.filter((bound) => !isDecided(bound)).map(({ projectPath }) => projectPath));
  if (late.length > 0) degraded.add(`${nameProjects(late)} not searched (${NO_TIME})`);
  const mergedBy = plan.mergedBy ?? mergeOrder(answers);
  return {
    hits: merge(answers.flatMap(rankHits), mergedBy)
      .slice(0, topK)
      .map(({ hit }) => hit),
    match: bestMatch(answers.map((answer) => answer.match)),
    degraded: [...degraded],
    damaged,
    projects: paths.length - late.length - failed.length,
    partial: late.length + failed.length > 0,
    mergedBy,
  };
}

interface SearchPlan {
  /** Projects whose bounds are not known. */
  readonly unbounded: readonly string[];
  /** Projects that may contribute, in the order of their bounds. */
  readonly bounded: readonly SearchBound[];
  /** How answers are merged; `undefined` until the answers are known. Then every project is searched. */
  readonly mergedBy: "score" | "rank" | undefined;
}

async function planSearch(
  storage: Storage,
  deps: SearchDeps,
  paths: readonly string[],
  { query, mode = "hybrid", ...given }: Omit<CheckpointQuery, "topK">,
  signal: AbortSignal | undefined,
): Promise<SearchPlan> {
  const { freshOnly: _, ...filter } = given;
  const everything: SearchPlan = { unbounded: paths, bounded: [], mergedBy: undefined };
  // A few projects are searched faster than their bounds are found.
  if (!storage.searchBounds || paths.length <= 2 * CONCURRENCY) return everything;
  const text = mode === "semantic" ? undefined : deps.redact(query).text;
  const read = async (semantic: EmbeddedText | undefined) => {
    const bounds = await storage.searchBounds!({ projectPaths: paths, filter: utcTimes(filter), text, semantic }).catch(() => {
      signal?.throwIfAborted();
      return []; // a project without bounds is searched, and its search reports what is wrong
    });
    const known = new Set(bounds.map(({ projectPath }) => projectPath));
    const filled = bounds.filter(({ newestAt }) => newestAt !== undefined);
    const isComparable = semantic !== undefined && filled.every(({ space }) => isSame(space, semantic.space));
    return { unbounded: paths.filter((path) => !known.has(path)), filled, isComparable };
  };
  const embed = async (embedder: Embedder | undefined) => embedder && embedText(deps, embedder, query, signal);
  let found = await read(mode === "keyword" ? undefined : await embed(await deps.embedders.preferred("checkpoints")));
  const space = found.filled[0]?.space;
  // All projects may have the vectors of another model, for example after an upgrade.
  if (mode !== "keyword" && !found.isComparable && space && found.filled.every((bound) => isSame(bound.space, space)))
    found = await read(await embed(await deps.embedders.serving(space)));
  const { unbounded, filled, isComparable } = found;
  if (isComparable) {
    const bounded = filled.filter(({ cosine, hasMatch }) => cosine !== undefined || hasMatch);
    return { unbounded, bounded: bounded.sort(byCosine), mergedBy: unbounded.length === 0 ? "score" : undefined };
  }
  const bounded = filled.filter(({ hasMatch, ...bound }) => hasMatch || (mode !== "keyword" && bound.space !== undefined));
  return { unbounded, bounded: bounded.sort(byNewest), mergedBy: unbounded.length === 0 ? "rank" : undefined };
}

function isSame(a: VectorSpace | undefined, b: VectorSpace): boolean {
  return a?.model === b.model && a.version === b.version && a.dimension === b.dimension;
}

const byCosine = (a: SearchBound, b: SearchBound) => (b.cosine ?? 0) - (a.cosine ?? 0);
const byNewest = (a: SearchBound, b: SearchBound) => (a.newestAt! < b.newestAt! ? 1 : -1);

/** Returns whether no hit of this project can stand above the worst of the best hits. */
function isBelow(bound: SearchBound, best: readonly RankedHit[], by: "score" | "rank"): boolean {
  if (by === "score") return (bound.cosine ?? 0) <= best.at(-1)!.hit.score;
  return best.every(({ hit, rank }) => rank === 0 && hit.record.createdOrder >= bound.newestAt!);
}

interface RankedHit {
  readonly hit: Hit<Checkpoint>;
  /** Place in the answer of its project. */
  readonly rank: number;
}

const rankHits = ({ hits }: CheckpointAnswer): RankedHit[] => hits.map((hit, rank) => ({ hit, rank }));

function mergeOrder(answers: readonly CheckpointAnswer[]): "score" | "rank" {
  const models = new Set(answers.filter(({ hits }) => hits.length > 0).map(({ model }) => model));
  return models.size === 1 && !models.has(undefined) ? "score" : "rank";
}

function merge(hits: readonly RankedHit[], by: "score" | "rank"): RankedHit[] {
  return [...hits].sort(
    (a, b) =>
      (by === "score" ? b.hit.score - a.hit.score || a.rank - b.rank : a.rank - b.rank) ||
      newestFirst(listPosition(a.hit.record), listPosition(b.hit.record)),
  );
}

function nameProjects(paths: readonly string[]): string {
  const more = paths.length > NAMED ? ` and ${paths.length - NAMED} more projects` : "";
  return `${paths.slice(0, NAMED).join(", ")}${more}: ${paths.length === 1 ? "it was" : "they were"}`;
}
