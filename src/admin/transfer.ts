import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { FileOptions, ProjectFiles } from "../ports/project-files.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";

/** A project as one database file, to keep as a backup or to carry elsewhere. */
export interface Transfer {
  /** Writes the project to a new file. It is the same kind of file whatever the projects are stored in. */
  export(input: ProjectFile, options?: TransferOptions): Promise<void>;
  /** Takes over what such a file holds, into this project. What is there already stays as it is, so that an import may be repeated. */
  import(input: ProjectFile, options?: TransferOptions): Promise<TransferReport>;
}

export interface ProjectFile {
  readonly projectPath: string;
  /** An absolute path. */
  readonly file: string;
}

export interface TransferOptions extends FileOptions {
  readonly progress?: ((done: number) => void) | undefined;
}

export interface TransferReport {
  /** The project the file was made from. */
  readonly from: string;
  readonly checkpoints: Taken;
  readonly knowledge: Taken;
}

export interface Taken {
  readonly imported: number;
  readonly present: number;
  readonly failed: number;
  /** What was wrong with the first few that failed. */
  readonly problems: readonly string[];
}

/** Stores records as if they were given anew: checked, without secrets, and embedded. */
export type Store = (projectPath: string, records: readonly unknown[], options: FileOptions) => Promise<Stored>;

interface Stored {
  readonly imported: number;
  readonly present: number;
  readonly problems: readonly { readonly problem: string }[];
}

export interface TransferDeps {
  readonly storage: Storage;
  readonly files: ProjectFiles;
  readonly checkpoints: Store;
  readonly knowledge: Store;
}

const PROBLEMS_SHOWN = 20;

export function transfer({ storage, files, checkpoints, knowledge }: TransferDeps): Transfer {
  return {
    async export({ projectPath, file }, { signal, progress } = {}) {
      if (await storage.copyTo?.(projectPath, file, { signal })) return;
      const project = await storage.find(projectPath);
      if (!project) throw new CairnError("not_found", "Nothing was ever stored for this project, so there is nothing to copy.");
      const fill = async (copy: ProjectStore) => {
        const told = counting(progress);
        for await (const page of checkpointPages(project, signal)) {
          await Promise.all(page.map((checkpoint) => copy.checkpoints.put(checkpoint)));
          told(page.length);
        }
        for await (const page of knowledgePages(project, signal)) {
          await Promise.all(page.map((record) => copy.knowledge.put(record)));
          told(page.length);
        }
      };
      await files.write(file, projectPath, fill, { signal });
    },

    import: ({ projectPath, file }, { signal, progress } = {}) =>
      files.read(
        file,
        async (project) => {
          const told = counting(progress);
          const take = async (pages: AsyncIterable<readonly unknown[]>, store: Store): Promise<Taken> => {
            const taken = { imported: 0, present: 0, failed: 0, problems: [] as string[] };
            for await (const page of pages) {
              const { imported, present, problems } = await store(projectPath, page, { signal });
              taken.imported += imported;
              taken.present += present;
              taken.failed += problems.length;
              taken.problems.push(...problems.slice(0, PROBLEMS_SHOWN - taken.problems.length).map(({ problem }) => problem));
              told(page.length);
            }
            return taken;
          };
          return {
            from: project.projectId,
            checkpoints: await take(checkpointPages(project, signal), checkpoints),
            knowledge: await take(knowledgePages(project, signal), knowledge),
          };
        },
        { signal },
      ),
  };
}

function counting(progress: TransferOptions["progress"]): (more: number) => void {
  let done = 0;
  return (more) => {
    done += more;
    progress?.(done);
  };
}

async function* checkpointPages({ checkpoints }: ProjectStore, signal: AbortSignal | undefined) {
  for (let after: { at: string; id: string } | undefined; ; ) {
    signal?.throwIfAborted();
    const page = await checkpoints.list({ limit: LIMITS.transferRecords, offset: 0, sortBy: "created_at", after });
    const last = page.checkpoints.at(-1);
    if (!last) return;
    yield page.checkpoints;
    after = { at: last.createdAt, id: last.id };
  }
}

async function* knowledgePages({ knowledge }: ProjectStore, signal: AbortSignal | undefined) {
  for (let after: { at: string; id: string } | undefined; ; ) {
    signal?.throwIfAborted();
    const { records } = await knowledge.list({ limit: LIMITS.transferRecords, after });
    const last = records.at(-1);
    if (!last) return;
    yield records;
    after = { at: last.createdAt, id: last.id };
  }
}
