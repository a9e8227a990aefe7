import { localOperations } from "../local/operations.ts";
import { withStaleness } from "../local/staleness.ts";
import { CairnError } from "../model/errors.ts";
import type { Operation } from "../operation.ts";
import { isFolder, withIdentity } from "./project.ts";

/** The operations of an edge beside the files: all that a server has, knowing of the files as they are now, and those that read the disk. */
export function edgeOperations(operations: readonly Operation[]): readonly Operation[] {
  return [...operations.map(withStaleness).map(withFolder), ...localOperations].map(withIdentity);
}

/** A checkpoint is saved for a folder that is there: under a mistyped path no later session would look for it. Only this side can tell. */
function withFolder(operation: Operation): Operation {
  if (operation.name !== "checkpoint_save") return operation;
  return {
    ...operation,
    async run(cairn, input, context) {
      const path = String(input.projectPath);
      if (!isFolder(path))
        throw new CairnError(
          "invalid_input",
          `project_path: there is no folder ${JSON.stringify(path.slice(0, 300))}. Give the path of an existing one.`,
        );
      return operation.run(cairn, input, context);
    },
  };
}
