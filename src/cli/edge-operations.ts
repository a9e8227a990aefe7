import { clientOperations } from "../client/jobs/operations.ts";
import { withStaleness } from "../client/staleness.ts";
import type { DoctorReport, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import type { Operation } from "../operations/operation.ts";
import { isFolder, withIdentity } from "./project.ts";

/**
 * The operations of an edge beside the files: all that a server has, knowing of the files as they are now, and those that read the disk.
 * A client operation replaces the server operation of the same name: `code_cancel` cancels the index job of this machine.
 * `findings` are what this side knows and the doctor should report.
 */
export function edgeOperations(operations: readonly Operation[], findings: readonly Finding[] = []): readonly Operation[] {
  const served = operations
    .map(withStaleness)
    .map(withFolder)
    .map((operation) => withFindings(operation, findings));
  const own = new Set(clientOperations.map(({ name }) => name));
  return [...served.filter(({ name }) => !own.has(name)), ...clientOperations].map(withIdentity);
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
