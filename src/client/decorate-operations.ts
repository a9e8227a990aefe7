import { identifyProject } from "../files/git-repository.ts";
import { isFolder } from "../files/is-folder.ts";
import type { DoctorReport, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { hasProject, type Operation } from "../operations/operation.ts";
import { clientOperations } from "./jobs/operations.ts";
import { withStaleness } from "./staleness.ts";

/**
 * Returns the operations of the client side: those of a server, which resolve folders to projects and mark stale hits, and the client
 * operations, which read the disk. A client operation replaces the server operation of the same name: `code_cancel` cancels the index
 * job of this machine. `findings` are added to the report of the doctor.
 */
export function decorateOperations(operations: readonly Operation[], findings: readonly Finding[] = []): readonly Operation[] {
  const own = new Set(clientOperations.map(({ name }) => name));
  const served = operations
    .filter(({ name }) => !own.has(name))
    .map(withStaleness)
    .map(withFolderCheck)
    .map((operation) => withFindings(operation, findings));
  return [...served, ...clientOperations].map(withIdentity);
}

/** Adds findings of the client side to the report of the doctor, which may run on a server. */
function withFindings(operation: Operation, added: readonly Finding[]): Operation {
  if (operation.name !== "doctor" || added.length === 0) return operation;
  return {
    ...operation,
    async run(cairn, input, context) {
      const report = (await operation.run(cairn, input, context)) as DoctorReport;
      const known = new Set(report.findings.map(({ subject }) => subject));
      const findings = [...report.findings, ...added.filter(({ subject }) => !known.has(subject))];
      const healthy = report.healthy && !findings.some(({ severity }) => severity === "problem");
      return { ...report, healthy, findings, checks: [...report.checks, "configuration"] } satisfies DoctorReport;
    },
  };
}

/** Makes checkpoint_save reject a folder that does not exist: no later session would search under a mistyped path. A server cannot check it. */
function withFolderCheck(operation: Operation): Operation {
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
