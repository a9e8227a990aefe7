import { CairnError } from "./errors.ts";
import { SHARED_PROJECT_ID } from "./ids.ts";

export type Scope = "project" | "shared";

/** Where records are kept: in a project, or for all projects. */
export interface RecordScope {
  readonly projectPath?: string | undefined;
  /** Default: the project. */
  readonly scope?: Scope | undefined;
}

/** The id of the database that is meant. */
export function resolveDatabase({ projectPath, scope }: RecordScope): string {
  if (scope === "shared") return SHARED_PROJECT_ID;
  if (projectPath === undefined) throw new CairnError("invalid_input", "project_path: name the project, or use scope shared.");
  if (projectPath === SHARED_PROJECT_ID) throw new CairnError("invalid_input", "project_path: use scope shared instead.");
  return projectPath;
}

/** What all projects share is no project that a key gets by itself: it must be named among its projects. */
export function assertMayTouch(place: RecordScope, mayTouch: (projectId: string) => boolean): void {
  if (resolveDatabase(place) === SHARED_PROJECT_ID && !mayTouch(SHARED_PROJECT_ID))
    throw new CairnError(
      "forbidden",
      'This key is not for what all projects share. Use one that names the project "shared", or name your project.',
    );
}

/** The input with the database that is meant as its project, if this caller may touch it. */
export function resolveScope<Input extends RecordScope>(
  { projectPath, scope, ...rest }: Input,
  mayTouch: (projectId: string) => boolean,
): Omit<Input, keyof RecordScope> & { projectPath: string } {
  assertMayTouch({ projectPath, scope }, mayTouch);
  return { ...rest, projectPath: resolveDatabase({ projectPath, scope }) };
}
