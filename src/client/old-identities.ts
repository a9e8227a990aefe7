import { isAbsolute, resolve } from "node:path";
import type { ListedProject } from "../admin/stats.ts";
import { identifyProject, type ProjectIdentity } from "../files/git-repository.ts";
import { isFolder } from "../files/is-folder.ts";
import type { DoctorReport, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { type Operation, withRun } from "../operations/operation.ts";
import { shellWord } from "../text/shell-word.ts";

/** Adds projects that are stored under old identities to the report of the doctor. Only the machine of the folders can find them. */
export function withOldIdentities(operation: Operation, operations: readonly Operation[]): Operation {
  const list = operations.find(({ name }) => name === "project_list");
  if (operation.name !== "doctor" || !list) return operation;
  return withRun(operation, async (cairn, input, context) => {
    const report = (await operation.run(cairn, input, context)) as DoctorReport;
    const listed = await list.run(cairn, { limit: LIMITS.listMax } as never, context).catch(unlessUnreadable);
    const { projects } = listed as { readonly projects: readonly ListedProject[] };
    return {
      ...report,
      findings: [...report.findings, ...oldIdentities(projects)],
      checks: [...report.checks, "projects"],
    } satisfies DoctorReport;
  });
}

/** The doctor has reported the database that cannot be read. */
function unlessUnreadable(error: unknown): { projects: readonly ListedProject[] } {
  if (error instanceof CairnError && error.code !== "cancelled") return { projects: [] };
  throw error;
}

/** Returns a note for each project whose folder belongs to another project today. */
export function oldIdentities(projects: readonly ListedProject[]): Finding[] {
  return projects.flatMap(({ projectPath, checkpoints, knowledge }): Finding[] => {
    const identity = identityOf(projectPath);
    if (!identity || identity.repository === projectPath) return [];
    // A linked working tree keeps its own code index, and so its database.
    if (identity.tree === projectPath && checkpoints + knowledge === 0) return [];
    const message = `Its ${checkpoints} checkpoints and ${knowledge} knowledge records are not found: the folder belongs to the project ${identity.repository}.`;
    const command = `cairn project merge ${shellWord(projectPath)}`;
    return [{ check: "projects", severity: "note", subject: `project ${projectPath}`, message, command }];
  });
}

/** Makes `project_merge` find the receiving project by the folder, and keep the code index of a linked working tree. */
export function withMergeTarget(operation: Operation): Operation {
  if (operation.name !== "project_merge") return operation;
  return withRun(operation, async (cairn, input, context) => {
    const { from, into, keepCode } = input as unknown as MergeInput;
    const mergeFrom = (path: string) => operation.run(cairn, { ...input, ...mergeTarget({ from: path, into, keepCode }) }, context);
    if (!/.[\\/]$/.test(from)) return mergeFrom(from);
    // Shells complete the name of a folder with a slash. A project may also be stored with one.
    return mergeFrom(from).catch((error) => {
      if (error instanceof CairnError && error.code === "not_found") return mergeFrom(from.slice(0, -1));
      throw error;
    });
  });
}

interface MergeInput {
  readonly from: string;
  readonly into?: string | undefined;
  readonly keepCode?: boolean | undefined;
}

function mergeTarget({ from: named, into: given, keepCode }: MergeInput): MergeInput {
  const from = isAbsolute(named) || !isFolder(resolve(named)) ? named : resolve(named); // else a name, which servers accept
  const identity = identityOf(from);
  const keep = keepCode || (identity !== undefined && identity.tree === from);
  if (given !== undefined) {
    const target = identityOf(given);
    if (isAbsolute(given) && !target)
      throw new CairnError(
        "invalid_input",
        `into: there is no folder ${JSON.stringify(given.slice(0, 300))}. Give the path of an existing one.`,
      );
    return { from, into: target?.repository ?? given, keepCode: keep };
  }
  if (!identity) throw new CairnError("invalid_input", `into: name the project that receives the records. There is no folder ${from}.`);
  if (identity.repository === from)
    throw new CairnError("invalid_input", `into: name the project that receives the records. ${from} is a project by itself.`);
  return { from, into: identity.repository, keepCode: keep };
}

/** Returns the project of a folder; `undefined` for a name, or a path that is no folder of this machine. */
function identityOf(path: string): ProjectIdentity | undefined {
  try {
    return isAbsolute(path) && isFolder(path) ? identifyProject(path) : undefined;
  } catch {
    return undefined; // a name that no file system accepts, or a folder that was deleted meanwhile
  }
}
