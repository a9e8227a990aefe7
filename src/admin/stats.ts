import type { EmbeddingFigures } from "../model/embedding-figures.ts";
import { asCairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { NO_TIME } from "../model/no-time.ts";
import type { ProjectEntry, UnreadProject } from "../ports/catalogue.ts";
import type { EmbeddingStore } from "../ports/embedding-store.ts";
import type { Storage } from "../ports/storage.ts";
import { forEachParallel } from "../scheduling/for-each-parallel.ts";

export interface ProjectFigures {
  readonly projectPath: string;
  readonly bytes?: number | undefined;
  readonly checkpoints: number;
  readonly knowledge: number;
  /** Checkpoints and knowledge records with and without a vector of the current embedding version. */
  readonly vectors: number;
  readonly vectorsMissing: number;
  readonly model?: string | undefined;
}

/** Counts of the shared database. */
export interface SharedFigures extends Omit<ProjectFigures, "projectPath" | "checkpoints"> {}

export interface StatsReport {
  readonly projects: readonly ProjectFigures[];
  /** Absent if there is none or the caller may not see it. */
  readonly shared?: SharedFigures | undefined;
  /** Number of projects that the caller may see, beyond `limit` too. */
  readonly total: number;
  /** True if some projects could not be read; `degraded` has the reasons. */
  readonly partial: boolean;
  readonly degraded: readonly string[];
  /** Sums over all projects; absent unless the caller may see all of them. */
  readonly embedding?: (EmbeddingFigures & { readonly cacheHitRatio?: number | undefined }) | undefined;
}

/** A project in the list of projects. */
export interface ListedProject {
  readonly projectPath: string;
  readonly checkpoints: number;
  readonly knowledge: number;
  /** Files in the code index. */
  readonly codeFiles: number;
  /** The last change of a checkpoint or knowledge record; absent without records. */
  readonly lastActivityAt?: string | undefined;
}

export interface ProjectList {
  readonly projects: readonly ListedProject[];
  /** Number of projects that the caller may see, beyond `limit` too. */
  readonly total: number;
  /** True if some projects could not be read; `degraded` has the reasons. */
  readonly partial: boolean;
  readonly degraded: readonly string[];
}

export interface Stats {
  /** Returns the projects that the caller may see, the most recently changed first. */
  projects(input: { readonly limit?: number | undefined; readonly mayTouch: (projectPath: string) => boolean }): Promise<ProjectList>;
  /** Returns counts and sizes of the projects that the caller may see, and the embedding costs of this process. */
  read(input: {
    readonly projectPath?: string | undefined;
    readonly limit?: number | undefined;
    readonly mayTouch: (projectPath: string) => boolean;
    /** Whether the caller may see every project, and so the sums; default false. */
    readonly allProjects?: boolean | undefined;
  }): Promise<StatsReport>;
}

export interface StatsDeps {
  readonly storage: Storage;
  readonly usage: () => EmbeddingFigures;
}

export function stats({ storage, usage }: StatsDeps): Stats {
  async function figuresOf({ projectPath, checkpoints, knowledge }: ProjectEntry): Promise<ProjectFigures | undefined> {
    const project = await storage.find(projectPath);
    if (!project) return undefined;
    const none: VectorFigures = { vectors: 0, vectorsMissing: 0 };
    const [ofCheckpoints, ofKnowledge, bytes] = await Promise.all([
      vectorFigures(project.checkpoints.embeddings),
      knowledge > 0 ? vectorFigures(project.knowledge.embeddings) : none,
      storage.sizeBytes(projectPath),
    ]);
    const vectors = ofCheckpoints.vectors + ofKnowledge.vectors;
    const vectorsMissing = ofCheckpoints.vectorsMissing + ofKnowledge.vectorsMissing;
    const model = ofCheckpoints.model ?? ofKnowledge.model;
    return { projectPath, bytes, checkpoints, knowledge, vectors, vectorsMissing, model };
  }

  async function sharedFigures(): Promise<SharedFigures | undefined> {
    const store = (await storage.find(SHARED_PROJECT_ID))?.knowledge;
    if (!store) return undefined;
    const [{ total }, vectors, bytes] = await Promise.all([
      store.list({ limit: 1 }),
      vectorFigures(store.embeddings),
      storage.sizeBytes(SHARED_PROJECT_ID),
    ]);
    return { bytes, knowledge: total, ...vectors };
  }

  /** Reads the catalogue, the most recently changed project first. */
  async function readCatalogue(isWanted: (projectPath: string) => boolean) {
    const { projects, unread } = await storage.catalogue({ isWanted });
    return { entries: [...projects].sort(byActivity), unread };
  }

  return {
    async projects({ limit = 20, mayTouch }) {
      const { entries, unread } = await readCatalogue(mayTouch);
      return { projects: entries.slice(0, limit), total: entries.length + unread.length, ...describeUnread(unread) };
    },

    async read({ projectPath, limit = 20, mayTouch, allProjects = false }) {
      const { entries, unread } = await readCatalogue((path) => (projectPath === undefined || path === projectPath) && mayTouch(path));
      const figures = new Map<string, ProjectFigures>();
      const missed: UnreadProject[] = [...unread];
      const shown = entries.slice(0, limit);
      const late = await forEachParallel(shown, { concurrency: CONCURRENCY }, async (entry) => {
        try {
          const found = await figuresOf(entry);
          if (found) figures.set(entry.projectPath, found);
        } catch (error) {
          missed.push({ projectPath: entry.projectPath, reason: asCairnError(error).message });
        }
      });
      missed.push(...late.map((entry) => ({ projectPath: entry.projectPath, reason: NO_TIME })));
      const shared = projectPath === undefined && mayTouch(SHARED_PROJECT_ID) ? await sharedFigures() : undefined;
      return {
        projects: shown.flatMap((entry) => figures.get(entry.projectPath) ?? []),
        ...(shared && { shared }),
        total: entries.length + unread.length,
        ...describeUnread(missed),
        ...(allProjects && { embedding: embeddingFigures(usage()) }),
      };
    },
  };
}

/** Projects whose figures are read at the same time. */
const CONCURRENCY = 4;
/** Projects that an answer names as not read. */
const NAMED = 5;

function byActivity(a: ProjectEntry, b: ProjectEntry): number {
  const [first, second] = [a.lastActivityAt ?? "", b.lastActivityAt ?? ""];
  return first === second ? (a.projectPath < b.projectPath ? -1 : 1) : first < second ? 1 : -1;
}

function describeUnread(unread: readonly UnreadProject[]): { readonly partial: boolean; readonly degraded: readonly string[] } {
  const named = unread.slice(0, NAMED).map(({ projectPath, reason }) => `${projectPath} could not be read (${reason})`);
  const more = unread.length - named.length;
  return { partial: unread.length > 0, degraded: more > 0 ? [...named, `${more} more projects could not be read`] : named };
}

function embeddingFigures(used: EmbeddingFigures): StatsReport["embedding"] {
  const lookups = used.cacheHits + used.cacheMisses;
  return { ...used, ...(lookups > 0 && { cacheHitRatio: used.cacheHits / lookups }) };
}

type VectorFigures = Pick<ProjectFigures, "vectors" | "vectorsMissing" | "model">;

async function vectorFigures(embeddings: EmbeddingStore): Promise<VectorFigures> {
  const current = (await embeddings.versions()).find(({ isCurrent }) => isCurrent);
  if (!current) return { vectors: 0, vectorsMissing: 0 };
  const { records, vectors } = await embeddings.counts(current.versionId);
  return { vectors, vectorsMissing: records - vectors, model: current.model };
}
