import { codeIndex } from "../../client/jobs/operations.ts";
import { type Call, type Command, PROJECT_FLAG } from "../command.ts";
import { operationCommand } from "../operation-command.ts";
import { findProject } from "../project.ts";

const base = operationCommand(codeIndex);

/** `cairn code index [path]`: a folder of the project may be given without a flag. */
export const indexCommand: Command = {
  ...base,
  description: "Begins in the background and says the job; --wait stays until it is done. The whole repository of the folder is indexed.",
  flags: [{ ...PROJECT_FLAG, name: "path", description: "A folder of the project; the same as --project." }, ...base.flags],
  positional: ["path"],
  run: ({ values: { path, ...values }, ...call }) => base.run({ ...call, values, ...(path !== undefined && named(String(path), call)) }),
};

function named(path: string, { host }: Pick<Call, "host">): Pick<Call, "project"> {
  return { project: () => findProject(path, host.cwd) };
}
