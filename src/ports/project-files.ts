import type { ProjectStore } from "./storage.ts";

export interface FileOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A project as one database file that can be carried elsewhere, whatever the projects themselves are stored in. */
export interface ProjectFiles {
  /** Writes a new file: whole, checked and for its owner only, or not at all. Raises `conflict` when there is a file already. */
  write(file: string, projectId: string, fill: (project: ProjectStore) => Promise<void>, options?: FileOptions): Promise<void>;
  /** Lets `work` read a checked copy; the file itself is never changed. Raises `invalid_input` for any other file, and for a damaged one. */
  read<T>(file: string, work: (project: ProjectStore) => Promise<T>, options?: FileOptions): Promise<T>;
}
