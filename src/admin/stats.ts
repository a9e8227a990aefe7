import type { EmbeddingFigures } from "../model/embedding-figures.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { EmbeddingStore } from "../ports/embedding-store.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";

export interface ProjectFigures {
  readonly projectPath: string;
  readonly bytes?: number | undefined;
  readonly checkpoints: number;
  readonly knowledge: number;
  /** Checkpoints with and without a vector of the current embedding version. */
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
  /** Sums over all projects; absent unless the caller may see all of them. */
  readonly embedding?: (EmbeddingFigures & { readonly cacheHitRatio?: number | undefined }) | undefined;
}

/** A project in the list of projects. */
export interface ListedProject {
  readonly projectPath: string;
  readonly checkpoints: number;
  readonly knowledge: number;
  /** The last change of a checkpoint or knowledge record; absent without records. */
  readonly lastActivityAt?: string | undefined;
}

export interface Stats {
  /** Returns the projects that the caller may see, the most recently changed first. */
  projects(input: {
    readonly limit?: number | undefined;
    readonly mayTouch: (projectPath: string) => boolean;
  }): Promise<{ readonly projects: readonly ListedProject[]; readonly total: number }>;
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
  async function figuresOf({ projectPath, checkpoints, knowledge }: ProjectStore): Promise<ProjectFigures> {
    const [{ total }, records, vectors, bytes] = await Promise.all([
      checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" }),
      knowledge.list({ limit: 1 }),
      vectorFigures(checkpoints.embeddings),
      storage.sizeBytes(projectPath),
    ]);
    return { projectPath, bytes, checkpoints: total, knowledge: records.total, ...vectors };
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

  async function describeProject({ projectPath, checkpoints, knowledge }: ProjectStore): Promise<ListedProject> {
    const [saved, records] = await Promise.all([
      checkpoints.list({ limit: 1, offset: 0, sortBy: "updated_at" }),
      knowledge.list({ limit: 1 }),
    ]);
    const times = [saved.checkpoints[0]?.updatedAt, records.records[0]?.updatedAt].filter((time) => time !== undefined).sort();
    return { projectPath, checkpoints: saved.total, knowledge: records.total, lastActivityAt: times.at(-1) };
  }

  return {
    async projects({ limit = 20, mayTouch }) {
      const paths = (await storage.projects()).filter((path) => mayTouch(path));
      const projects: ListedProject[] = [];
      for (const path of paths.slice(0, LIMITS.projectsListed)) {
        const project = await storage.find(path);
        if (project) projects.push(await describeProject(project));
      }
      projects.sort((a, b) => ((a.lastActivityAt ?? "") < (b.lastActivityAt ?? "") ? 1 : -1));
      return { projects: projects.slice(0, limit), total: paths.length };
    },

    async read({ projectPath, limit = 20, mayTouch, allProjects = false }) {
      const paths = (projectPath === undefined ? await storage.projects() : [projectPath]).filter((path) => mayTouch(path));
      const projects: ProjectFigures[] = [];
      for (const path of paths.slice(0, limit)) {
        const project = await storage.find(path);
        if (project) projects.push(await figuresOf(project));
      }
      const shared = projectPath === undefined && mayTouch(SHARED_PROJECT_ID) ? await sharedFigures() : undefined;
      return { projects, ...(shared && { shared }), total: paths.length, ...(allProjects && { embedding: embeddingFigures(usage()) }) };
    },
  };
}

function embeddingFigures(used: EmbeddingFigures): StatsReport["embedding"] {
  const lookups = used.cacheHits + used.cacheMisses;
  return { ...used, ...(lookups > 0 && { cacheHitRatio: used.cacheHits / lookups }) };
}

async function vectorFigures(embeddings: EmbeddingStore): Promise<Pick<ProjectFigures, "vectors" | "vectorsMissing" | "model">> {
  const current = (await embeddings.versions()).find(({ isCurrent }) => isCurrent);
  if (!current) return { vectors: 0, vectorsMissing: 0 };
  const { records, vectors } = await embeddings.counts(current.versionId);
  return { vectors, vectorsMissing: records - vectors, model: current.model };
}
