import type { ProjectEntry } from "../../ports/catalogue.ts";
import type { ProjectStore } from "../../ports/storage.ts";

/** Counts the records of a project that has no catalogue. */
export async function countProject({ projectPath, checkpoints, knowledge, code }: ProjectStore): Promise<ProjectEntry> {
  const [saved, records, files] = await Promise.all([
    checkpoints.list({ limit: 1, offset: 0, sortBy: "updated_at" }),
    knowledge.list({ limit: 1 }),
    code.filePage({ sortBy: "path", limit: 1, offset: 0 }).catch(() => undefined), // a damaged index must not hide the records
  ]);
  const times = [saved.checkpoints[0]?.updatedAt, records.records[0]?.updatedAt].filter((time) => time !== undefined).sort();
  return {
    projectPath,
    checkpoints: saved.total,
    knowledge: records.total,
    codeFiles: files?.total ?? 0,
    lastActivityAt: times.at(-1),
  };
}
