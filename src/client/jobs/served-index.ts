import { identifyProject } from "../../files/git-repository.ts";
import { isFolder } from "../../files/is-folder.ts";
import { shortPath } from "../../files/regular-file.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Cairn } from "../../operations/cairn.ts";
import type { Operation } from "../../operations/operation.ts";
import { codeIndex } from "./operations.ts";

/**
 * `code_index` as `cairn serve` and `cairn ui` offer it over HTTP: for the user who runs the server, and for the folders of projects that
 * have stored something. A server reads no files for anybody else, and no folder that a browser names for the first time.
 */
export const servedCodeIndex: Operation = {
  ...codeIndex,
  description:
    "Only cairn serve and cairn ui have this operation, and only the local user may call it, for the folder of a project that has stored something. Returns a job at once; code_jobs reports its progress.",
  input: codeIndex.input.omit({ wait: true, anywhere: true }),
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "none",
  http: { method: "POST", path: "/v1/code/index", status: 202 },
  async run(cairn, input, context) {
    if (context.keyId !== undefined)
      throw new CairnError("forbidden", "Only the local user can index a folder of the server. Run cairn code index on your machine.");
    await requireProjectFolder(cairn, (input as { readonly projectPath: string }).projectPath);
    return codeIndex.run(cairn, { ...input, wait: false, anywhere: false }, context);
  },
};

/** Refuses a path unless it is a project that has stored something and the root of a working tree of this machine. */
async function requireProjectFolder(cairn: Cairn, path: string): Promise<void> {
  if (!(await cairn.projects()).includes(path))
    throw new CairnError("not_found", `There is no project ${shortPath(path)}. Index its folder by cairn code index first.`);
  if (!isFolder(path) || identifyProject(path).tree !== path)
    throw new CairnError(
      "not_found",
      `${shortPath(path)} is not the folder of a project on the machine of this server. Run cairn code index on the machine that has it.`,
    );
}
