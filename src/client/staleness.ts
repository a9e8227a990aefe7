import { z } from "zod";
import type { Operation } from "../operations/operation.ts";
import type { IndexJobs } from "./jobs/index-jobs.ts";

/** Something of a file that an answer shows. */
interface Shown {
  readonly path: string;
  readonly contentHash: string;
}

/** The fields in which answers show files. */
const LISTS = ["results", "contexts", "definitions", "references"];

/** The same operation; but what it shows of files that have changed on disk since they were indexed says so. */
export function withStaleness(operation: Operation): Operation {
  const lists = LISTS.filter((list) => operation.name.startsWith("code_") && operation.output.shape[list] instanceof z.ZodArray);
  if (lists.length === 0) return operation;
  return {
    ...operation,
    async run(cairn, input, context) {
      const answer = (await operation.run(cairn, input, context)) as Record<string, unknown>;
      const { projectPath } = input as { readonly projectPath?: string };
      if (!cairn.indexJobs || projectPath === undefined) return answer;
      const { isStale } = cairn.indexJobs;
      const marked = lists.map(async (list) => [list, await mark((answer[list] ?? []) as readonly Shown[], projectPath, isStale)] as const);
      return { ...answer, ...Object.fromEntries(await Promise.all(marked)) };
    },
  };
}

async function mark(shown: readonly Shown[], projectPath: string, isStale: IndexJobs["isStale"]): Promise<readonly Shown[]> {
  const byFile = new Map<string, Promise<boolean>>();
  return Promise.all(
    shown.map(async (one) => {
      const file = `${one.contentHash} ${one.path}`;
      if (!byFile.has(file)) byFile.set(file, isStale(projectPath, one.path, one.contentHash));
      return { ...one, stale: await byFile.get(file)! };
    }),
  );
}
