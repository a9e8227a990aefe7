import type { Config } from "../../config/schema.ts";
import { CairnError } from "../../model/errors.ts";
import { openFromConfig } from "../../open/open-from-config.ts";
import { resolveRoot } from "../files/root.ts";
import type { OnFolder } from "../files/walk.ts";
import { indexJobs } from "../jobs/index-jobs.ts";
import { runIndexWork } from "../jobs/index-work.ts";
import type { Job } from "../jobs/job.ts";
import { jobFiles } from "../jobs/job-files.ts";
import { launchHere } from "../jobs/launch.ts";
import { watchProject } from "./watch-project.ts";

/** What a thread needs to watch a project. */
export interface WatchWork {
  readonly config: Config;
  /** Path of the project. */
  readonly watch: string;
}

export interface WatchIndexOptions {
  readonly includeIgnored: boolean;
  readonly signal: AbortSignal;
  /** Called after every run that changed the index. */
  readonly onChange?: (job: Job) => void;
  readonly onProblem?: (message: string) => void;
}

/** Watches a project and keeps its index up to date, in this thread, until stopped. */
export async function watchIndex(config: Config, projectPath: string, options: WatchIndexOptions): Promise<void> {
  const { includeIgnored, signal, onChange = () => {}, onProblem = () => {} } = options;
  await resolveRoot(projectPath);
  const cairn = config.api.url === undefined ? await openFromConfig(config, "own") : undefined;
  const jobs = jobFiles(config.dataDir);
  let enter: OnFolder = () => {};
  const runner = indexJobs({
    dataDir: config.dataDir,
    launch: launchHere((job, lease, stop) =>
      runIndexWork({ config, job, lease }, { stop, cairn, onFolder: (folder, rules) => enter(folder, rules) }),
    ),
    counts: async () => ({ files: 0, chunks: 0 }),
  });
  try {
    await watchProject({
      signal,
      index(onFolder, stop) {
        enter = onFolder;
        return runner.index({ projectPath, includeIgnored, wait: true }, { signal: stop });
      },
      async onIndexed(outcome) {
        if (outcome instanceof CairnError) return onProblem(outcome.message);
        const { indexed, renamed, removed } = outcome.counts;
        if (outcome.status === "failed") onProblem(outcome.error ?? "Indexing failed.");
        else if (indexed + renamed + removed > 0) onChange(outcome);
        // Runs that found no change would fill the list of jobs.
        else if (outcome.status === "completed") await jobs.remove(outcome.jobId);
      },
    });
  } finally {
    await runner.close();
    await cairn?.close();
  }
}
