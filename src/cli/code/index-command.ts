import { codeIndex } from "../../client/jobs/operations.ts";
import { type Call, type Command, PROJECT_FLAG } from "../command.ts";
import { operationCommand } from "../operation-command.ts";
import { findProject } from "../project.ts";

const base = operationCommand(codeIndex);

/** `cairn code index [path]`: the folder may be given without a flag. */
export const indexCommand: Command = {
  ...base,
  description: "Runs in the background and prints the job; --wait waits until it has ended. Indexes the whole repository of the folder.",
  flags: [{ ...PROJECT_FLAG, name: "path", description: "A folder of the project, as --project." }, ...base.flags],
  positional: ["path"],
  run: ({ values: { path, ...values }, ...call }) =>
    base.run({ ...call, values, ...(path !== undefined && selectProject(String(path), call)) }),
};

function selectProject(path: string, { host }: Pick<Call, "host">): Pick<Call, "project"> {
  return { project: () => findProject(path, host.cwd) };
}
