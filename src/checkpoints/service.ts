import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";
import { CairnError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Storage } from "../ports/storage.ts";
import { decodeCursor, encodeCursor } from "../text/cursor.ts";

export interface SaveCheckpoint {
  readonly projectPath: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly context?: Readonly<Record<string, string>> | undefined;
  readonly tags?: readonly string[] | undefined;
}

export interface ListCheckpoints {
  readonly projectPath: string;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly sortBy?: CheckpointSort | undefined;
}

export interface CheckpointList {
  readonly checkpoints: readonly Checkpoint[];
  readonly total: number;
  /** Where the next page starts; absent on the last page. */
  readonly nextCursor?: string | undefined;
}

/** Where agents were, per project. */
export interface Checkpoints {
  save(input: SaveCheckpoint): Promise<Checkpoint>;
  get(input: { readonly projectPath: string; readonly id: string }): Promise<Checkpoint>;
  list(input: ListCheckpoints): Promise<CheckpointList>;
  delete(input: { readonly projectPath: string; readonly id: string }): Promise<{ readonly deleted: boolean }>;
}

export interface CheckpointDeps {
  readonly storage: Storage;
  readonly now: Clock;
  readonly newId: () => string;
  readonly countTokens: (text: string) => Promise<number>;
}

export function checkpoints({ storage, now, newId, countTokens }: CheckpointDeps): Checkpoints {
  return {
    async save({ projectPath, summary, description = "", context = {}, tags = [] }) {
      const at = now();
      const checkpoint: Checkpoint = {
        id: newId(),
        projectPath,
        summary,
        description,
        context,
        tags: distinct(tags),
        tokenCount: await countTokens(`${summary}\n\n${description}`),
        createdAt: at,
        updatedAt: at,
      };
      const project = await storage.create(projectPath);
      await project.checkpoints.put(checkpoint);
      return checkpoint;
    },

    async get({ projectPath, id }) {
      const project = await storage.find(projectPath);
      const checkpoint = await project?.checkpoints.get(id);
      if (!checkpoint)
        throw new CairnError(
          "not_found",
          `There is no checkpoint ${JSON.stringify(id)} in this project. List them to see which there are.`,
        );
      return checkpoint;
    },

    async list({ projectPath, limit = 10, offset = 0, cursor, sortBy = "created_at" }) {
      const after = cursor === undefined ? undefined : decodeCursor(cursor, sortBy);
      const project = await storage.find(projectPath);
      if (!project) return { checkpoints: [], total: 0 };
      // One more than asked for tells whether there is another page.
      const page = await project.checkpoints.list({ limit: limit + 1, offset, sortBy, after });
      const shown = page.checkpoints.slice(0, limit);
      const last = shown.at(-1);
      const more = last && page.checkpoints.length > limit;
      return {
        checkpoints: shown,
        total: page.total,
        nextCursor: more ? encodeCursor(sortBy, sortBy === "created_at" ? last.createdAt : last.updatedAt, last.id) : undefined,
      };
    },

    async delete({ projectPath, id }) {
      const project = await storage.find(projectPath);
      return { deleted: (await project?.checkpoints.delete(id)) ?? false };
    },
  };
}

/** Tags are compared without regard to case; the first spelling stays. */
function distinct(tags: readonly string[]): string[] {
  const seen = new Map<string, string>();
  for (const tag of tags) if (!seen.has(tag.toLowerCase())) seen.set(tag.toLowerCase(), tag);
  return [...seen.values()];
}
