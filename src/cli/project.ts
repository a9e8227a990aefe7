import { statSync } from "node:fs";
import { resolve } from "node:path";
import { identifyProject, type ProjectIdentity } from "../files/git-repository.ts";
import { shortPath } from "../files/regular-file.ts";
import { CairnError } from "../model/errors.ts";
import { type Operation, projectField } from "../operations/operation.ts";

/** Finds the project of the folder that was named, or of the current one. */
export function findProject(named: string | undefined, cwd: string): ProjectIdentity {
  const path = resolve(cwd, named ?? ".");
  if (!isFolder(path))
    throw new CairnError("invalid_input", `--project: there is no folder ${shortPath(path)}. Give the path of an existing one.`);
  return identifyProject(path);
}

/** A path with a NUL character or too long a name makes the look-up itself fail; to the person it is just as little a folder. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/**
 * Makes an operation resolve the folder in its input to the project that the folder belongs to. A path that is no folder of this machine
 * is passed on as it is: records of a deleted project can still be read.
 */
export function withIdentity(operation: Operation): Operation {
  const field = projectField(operation);
  if (field === undefined) return operation;
  const name = field === "project_path" ? "projectPath" : "projectId";
  return {
    ...operation,
    run(cairn, input, context) {
      const path = (input as Readonly<Record<string, unknown>>)[name];
      if (typeof path !== "string" || !isFolder(path)) return operation.run(cairn, input, context);
      const { repository, tree } = identifyProject(path);
      return operation.run(cairn, { ...input, [name]: concernsCode(operation, input) ? tree : repository }, context);
    },
  };
}

/** The code index belongs to the working tree, everything else to the repository. */
function concernsCode({ name }: Operation, input: Readonly<Record<string, unknown>>): boolean {
  return name.startsWith("code_") || input.collection === "code";
}
