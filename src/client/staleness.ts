import { z } from "zod";
import { type Operation, withRun } from "../operations/operation.ts";
import type { IndexJobs } from "./jobs/index-jobs.ts";

/** A part of a file in an answer. */
interface FilePart {
  readonly path: string;
  readonly contentHash: string;
}

/** Fields of answers that hold parts of files. */
const LISTS = ["results", "contexts", "definitions", "references", "callers", "affected", "matches"];

/** Makes an operation mark the parts of files that have changed on disk since they were indexed. */
export function withStaleness(operation: Operation): Operation {
  const lists = LISTS.filter((list) => operation.name.startsWith("code_") && operation.output.shape[list] instanceof z.ZodArray);
  if (lists.length === 0) return operation;
  return withRun(operation, async (cairn, input, context) => {
    const answer = (await operation.run(cairn, input, context)) as Record<string, unknown>;
    const { projectPath } = input as { readonly projectPath?: string };
    if (!cairn.indexJobs || projectPath === undefined) return answer;
    const { isStale } = cairn.indexJobs;
    const marked = lists.map(
      async (list) => [list, await mark((answer[list] ?? []) as readonly FilePart[], projectPath, isStale)] as const,
    );
    return { ...answer, ...Object.fromEntries(await Promise.all(marked)) };
  });
}

async function mark(parts: readonly FilePart[], projectPath: string, isStale: IndexJobs["isStale"]): Promise<readonly FilePart[]> {
  const byFile = new Map<string, Promise<boolean>>();
  return Promise.all(
    parts.map(async (part) => {
      const file = `${part.contentHash} ${part.path}`;
      if (!byFile.has(file)) byFile.set(file, isStale(projectPath, part.path, part.contentHash));
      return { ...part, stale: await byFile.get(file)! };
    }),
  );
}
