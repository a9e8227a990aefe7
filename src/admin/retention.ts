import { CairnError } from "../model/errors.ts";
import { EVENT_DAYS } from "../model/event.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";
import { type DeletionRules, purgeExpired, retentionStart } from "../recall/deletion.ts";

export interface PurgedRecords {
  readonly checkpoints: number;
  readonly knowledge: number;
}

/** Erases deleted records whose retention has ended. */
export interface Retention {
  /** Erases the records of one database that were deleted before a time; default: whose retention has ended. */
  purgeDeleted(input: { readonly database: string; readonly before?: string | undefined }, options?: Options): Promise<PurgedRecords>;
  /** Does so for every project and the shared knowledge, and deletes old events. A database that cannot be used is skipped. */
  upkeep(options?: Options): Promise<PurgedRecords>;
}

interface Options {
  readonly signal?: AbortSignal | undefined;
}

export interface RetentionDeps extends DeletionRules {
  readonly storage: Storage;
  readonly runs?: Pick<RunStore, "events"> | undefined;
}

const DAY_MS = 86_400_000;

export function retention({ storage, runs, ...rules }: RetentionDeps): Retention {
  const purge = async ({ checkpoints, knowledge }: ProjectStore, before: string, signal: AbortSignal | undefined) => ({
    checkpoints: await purgeExpired(checkpoints, before, signal),
    knowledge: await purgeExpired(knowledge, before, signal),
  });

  return {
    async purgeDeleted({ database, before = retentionStart(rules) }, { signal } = {}) {
      const project = await storage.find(database);
      return project ? purge(project, before, signal) : { checkpoints: 0, knowledge: 0 };
    },

    async upkeep({ signal } = {}) {
      const before = retentionStart(rules);
      const eventsBefore = new Date(Date.parse(rules.now()) - EVENT_DAYS * DAY_MS).toISOString();
      const sum = { checkpoints: 0, knowledge: 0 };
      for (const database of [...(await storage.projects()), SHARED_PROJECT_ID]) {
        signal?.throwIfAborted();
        try {
          const project = await storage.find(database);
          if (!project) continue;
          const { checkpoints, knowledge } = await purge(project, before, signal);
          await project.events.prune(eventsBefore);
          sum.checkpoints += checkpoints;
          sum.knowledge += knowledge;
        } catch (error) {
          if (!(error instanceof CairnError) || error.code === "cancelled") throw error; // a bug, or the process ends
        }
      }
      await runs?.events?.prune(eventsBefore).catch(() => {}); // tried again by the next upkeep
      return sum;
    },
  };
}
