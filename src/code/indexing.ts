import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { type IndexJob, isFinished, type ManifestPage, type Rename } from "../model/index-job.ts";
import type { IndexQueue, QueueDepth } from "../ports/index-queue.ts";
import { pathProblem, type SourceFile } from "./index-batch.ts";
import type { CallOptions, Code } from "./service.ts";

/** Names the API key that sends work, so that one key cannot fill the queue for others. Without a key only the queue's capacity counts. */
export interface SendOptions {
  readonly sender?: string | undefined;
}

/** Accepts content at once and indexes it in the background, each project in the order of acceptance. */
export interface Indexing {
  send(
    batch: {
      readonly projectPath: string;
      readonly files: readonly SourceFile[];
      readonly renames?: readonly Rename[] | undefined;
    },
    options?: SendOptions,
  ): Promise<IndexJob>;
  /** Takes all paths of a range. Indexed files of that range that it does not name are removed, after all content that was sent before is indexed. */
  sendManifest(page: { readonly projectPath: string } & ManifestPage, options?: SendOptions): Promise<IndexJob>;
  /** Returns a job; waits up to `waitMs` for its end. Raises `not_found` for an unknown job. */
  job(id: string, options?: CallOptions & { readonly waitMs?: number | undefined }): Promise<IndexJob>;
  cancel(id: string): Promise<IndexJob>;
  depth(projectPath?: string): Promise<QueueDepth>;
  /** Starts to work on queued jobs, also on those of processes that died. For long-lived processes. */
  start(): Promise<void>;
}

export interface IndexingDeps {
  readonly code: Pick<Code, "prepare">;
  readonly queue: IndexQueue;
}

/** Milliseconds between two looks at a job. */
const LOOK_EVERY_MS = 50;

export function indexing({ code, queue }: IndexingDeps): Indexing {
  async function getJob(id: string): Promise<IndexJob> {
    const job = await queue.get(id);
    if (!job) throw unknownJob(id);
    return job;
  }

  return {
    send: async (batch, { sender } = {}) => queue.add(await code.prepare(batch), sender),

    async sendManifest({ projectPath, manifest, after, until }, { sender } = {}) {
      assertPage({ manifest, after, until });
      return queue.add({ kind: "manifest", projectPath, manifest, after, until }, sender);
    },

    async job(id, { waitMs = 0, signal } = {}) {
      const deadline = Date.now() + waitMs;
      for (;;) {
        const job = await getJob(id);
        const left = deadline - Date.now();
        if (isFinished(job) || left <= 0) return job;
        await sleep(Math.min(left, LOOK_EVERY_MS), undefined, { signal });
      }
    },

    async cancel(id) {
      const job = await queue.cancel(id);
      if (!job) throw unknownJob(id);
      return job;
    },

    depth: (projectPath) => queue.depth(projectPath),
    start: () => queue.start(),
  };
}

/** Reports an unknown job: its server may have died with it. */
export function unknownJob(id: string): CairnError {
  return new CairnError("not_found", `There is no job ${JSON.stringify(id.slice(0, 100))}. If you sent files with it, send them again.`);
}

/** Refuses a page without files, and files outside its range: an incomplete page would remove too much. */
function assertPage({ manifest, after, until }: ManifestPage): void {
  const refuse = (problem: string) => new CairnError("invalid_input", problem);
  if (manifest.length === 0) throw refuse("paths: a manifest names at least one file. To remove all, clean the index.");
  if (new Set(manifest).size < manifest.length) throw refuse("paths: a path is given twice.");
  for (const path of manifest) {
    const problem = pathProblem(path);
    if (problem) throw refuse(`paths: ${JSON.stringify(path.slice(0, 200))}: ${problem}`);
    if ((after !== undefined && path <= after) || (until !== undefined && path > until))
      throw refuse(`paths: ${JSON.stringify(path.slice(0, 200))} is not in the range of the page.`);
  }
}
