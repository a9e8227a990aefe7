import type { ProjectStore } from "./storage.ts";

export interface FileOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Exports a project to one portable database file, and reads such files, whatever the storage of the projects. */
export interface ProjectFiles {
  /** Writes a new file atomically, verified and with mode 0600. Raises `conflict` if the file exists. */
  write(file: string, projectId: string, fill: (project: ProjectStore) => Promise<void>, options?: FileOptions): Promise<void>;
  /** Lets `work` read a verified copy; the file itself is never changed. Raises `invalid_input` for a damaged file or another format. */
  read<T>(file: string, work: (project: ProjectStore) => Promise<T>, options?: FileOptions): Promise<T>;
}
