import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import type { FileOptions, ProjectFiles } from "../ports/project-files.ts";
import type { ProjectStore } from "../ports/storage.ts";
import { type MergeDeps, type MergeProject, type MergeReport, mergeProject } from "./merge.ts";
import {
  checkpointPages,
  deletedPages,
  knowledgePages,
  type Page,
  PROBLEMS_SHOWN,
  progressCounter,
  type Store,
  type Stored,
} from "./record-pages.ts";

/** Exports a project to one database file, imports such a file, and merges projects. */
export interface Transfer {
  /** Writes the project to a new SQLite file, whatever its storage. */
  export(input: ProjectFile, options?: TransferOptions): Promise<{ readonly damaged: readonly DamagedRecord[] }>;
  /** Imports the records of such a file into a project. Existing records stay unchanged, so an import may be repeated. */
  import(input: ProjectFile, options?: TransferOptions): Promise<TransferReport>;
  /** Moves all checkpoints and knowledge of one project into another. An interrupted call can be repeated. */
  merge(input: MergeProject, options?: TransferOptions): Promise<MergeReport>;
}

export interface ProjectFile {
  readonly projectPath: string;
  /** An absolute path. */
  readonly file: string;
  /** Carries the code index too, in a file next to it. Without it, an index run builds the index again. */
  readonly withCode?: boolean | undefined;
  /** Leaves out deleted records, which could still be restored. */
  readonly withoutDeleted?: boolean | undefined;
}

export interface TransferOptions extends FileOptions {
  readonly progress?: ((done: number) => void) | undefined;
}

export interface TransferReport {
  /** The project of the file. */
  readonly from: string;
  readonly checkpoints: ImportCounts;
  readonly knowledge: ImportCounts;
  /** Whether the code index was imported. `present`: the project has one, which stays as it is. */
  readonly code: "imported" | "present" | "not imported";
}

export interface ImportCounts {
  readonly imported: number;
  readonly present: number;
  readonly failed: number;
  /** The problems of the first failed records. */
  readonly problems: readonly string[];
}

export interface TransferDeps extends MergeDeps {
  readonly files: ProjectFiles;
}

const NONE: Stored = { imported: 0, present: 0, problems: [] };

export function transfer(deps: TransferDeps): Transfer {
  const { storage, files, checkpoints, knowledge } = deps;
  return {
    merge: (input, options) => mergeProject(deps, input, options),

    async export({ projectPath, file, withCode = false, withoutDeleted = false }, { signal, progress } = {}) {
      // A copy of the file includes damaged rows; writing records one by one skips them.
      if (await storage.copyTo?.(projectPath, file, { signal, withCode, withoutDeleted }))
        return { damaged: (await storage.checkRecords(projectPath)).damaged };
      if (withCode) throw notAFile();
      const project = await storage.find(projectPath);
      if (!project) throw new CairnError("not_found", "Nothing is stored for this project.");
      const damaged: DamagedRecord[] = [];
      const fill = async (copy: ProjectStore) => {
        const count = progressCounter(progress);
        for await (const page of checkpointPages(project, signal)) {
          await Promise.all(page.records.map((checkpoint) => copy.checkpoints.put(checkpoint)));
          damaged.push(...page.damaged);
          count(page.records.length);
        }
        for await (const page of knowledgePages(project, signal)) {
          await Promise.all(page.records.map((record) => copy.knowledge.put(record)));
          damaged.push(...page.damaged);
          count(page.records.length);
        }
        if (withoutDeleted) return;
        for await (const page of deletedPages(project.checkpoints, signal)) {
          await Promise.all(page.records.map(({ deletedAt, ...checkpoint }) => copy.checkpoints.putDeleted(checkpoint, deletedAt)));
          damaged.push(...page.damaged);
          count(page.records.length);
        }
        for await (const page of deletedPages(project.knowledge, signal)) {
          await Promise.all(page.records.map(({ deletedAt, ...record }) => copy.knowledge.putDeleted(record, deletedAt)));
          damaged.push(...page.damaged);
          count(page.records.length);
        }
      };
      await files.write(file, projectPath, fill, { signal });
      return { damaged };
    },

    async import({ projectPath, file, withCode = false, withoutDeleted = false }, { signal, progress } = {}) {
      if (withCode && !storage.importCode) throw notAFile();
      const report = await files.read(
        file,
        async (project) => {
          const count = progressCounter(progress);
          const importPages = async (lists: readonly AsyncIterable<Page<unknown>>[], store: Store): Promise<ImportCounts> => {
            const counts = { imported: 0, present: 0, failed: 0, problems: [] as string[] };
            for (const pages of withoutDeleted ? lists.slice(0, 1) : lists)
              for await (const page of pages) {
                const {
                  imported,
                  present,
                  problems: refused,
                } = page.records.length > 0 ? await store(projectPath, page.records, { signal }) : NONE;
                const problems = [...refused, ...page.damaged.map(({ id, reason }) => ({ problem: `${id} is damaged: ${reason}` }))];
                counts.imported += imported;
                counts.present += present;
                counts.failed += problems.length;
                counts.problems.push(...problems.slice(0, PROBLEMS_SHOWN - counts.problems.length).map(({ problem }) => problem));
                count(page.records.length);
              }
            return counts;
          };
          return {
            from: project.projectPath,
            checkpoints: await importPages([checkpointPages(project, signal), deletedPages(project.checkpoints, signal)], checkpoints),
            knowledge: await importPages([knowledgePages(project, signal), deletedPages(project.knowledge, signal)], knowledge),
          };
        },
        { signal },
      );
      if (!withCode) return { ...report, code: "not imported" };
      await storage.create(projectPath);
      return { ...report, code: (await storage.importCode!(projectPath, file, { signal })) ? "imported" : "present" };
    },
  };
}

function notAFile(): CairnError {
  return new CairnError("conflict", "Only SQLite stores the code index in a file. Omit with_code, and run: cairn code index");
}
