import { statSync } from "node:fs";
import { identifyProject } from "../files/git-repository.ts";
import { hasProject, type Operation } from "../operations/operation.ts";

/**
 * Makes an operation resolve the folder in its input to the project of that folder. A path that is not a folder of this machine is passed
 * unchanged: records of a deleted project stay readable.
 */
export function withIdentity(operation: Operation): Operation {
  if (!hasProject(operation)) return operation;
  return {
    ...operation,
    run(cairn, input, context) {
      const { projectPath: path } = input as Readonly<Record<string, unknown>>;
      if (typeof path !== "string" || !isFolder(path)) return operation.run(cairn, input, context);
      const { repository, tree } = identifyProject(path);
      return operation.run(cairn, { ...input, projectPath: concernsCode(operation, input) ? tree : repository }, context);
    },
  };
}

/** The code index belongs to the working tree, everything else to the repository. */
function concernsCode({ name }: Operation, input: Readonly<Record<string, unknown>>): boolean {
  return name.startsWith("code_") || input.collection === "code";
}

/** Returns whether the path names a folder. A path that cannot be looked up, for a NUL character or its length, does not. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
