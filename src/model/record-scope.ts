import { CairnError } from "./errors.ts";
import { SHARED_PROJECT_ID } from "./ids.ts";

export type Scope = "project" | "shared";

/** The scope of records: one project, or shared by all projects. */
export interface RecordScope {
  readonly projectPath?: string | undefined;
  /** Default: the project. */
  readonly scope?: Scope | undefined;
}

/** Returns the id of the database of a scope. */
export function resolveDatabase({ projectPath, scope }: RecordScope): string {
  if (scope === "shared") return SHARED_PROJECT_ID;
  if (projectPath === undefined) throw new CairnError("invalid_input", "project_path: name the project, or use scope shared.");
  if (projectPath === SHARED_PROJECT_ID) throw new CairnError("invalid_input", "project_path: use scope shared instead.");
  return projectPath;
}

/** Raises `forbidden` for shared knowledge unless the key lists `shared`. Access to a project never includes it. */
export function assertMayTouch(scope: RecordScope, mayTouch: (projectId: string) => boolean): void {
  if (resolveDatabase(scope) === SHARED_PROJECT_ID && !mayTouch(SHARED_PROJECT_ID))
    throw new CairnError("forbidden", "A key can access shared knowledge only if it lists `shared`. Use such a key, or name a project.");
}

/** Replaces the scope of an input by the id of its database, if the caller may access it. */
export function resolveScope<Input extends RecordScope>(
  { projectPath, scope, ...rest }: Input,
  mayTouch: (projectId: string) => boolean,
): Omit<Input, keyof RecordScope> & { projectPath: string } {
  assertMayTouch({ projectPath, scope }, mayTouch);
  return { ...rest, projectPath: resolveDatabase({ projectPath, scope }) };
}
