import { realpathSync, type Stats, statSync } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";
import { gitDataFolder, identifyProject, type ProjectIdentity } from "../files/git-repository.ts";
import type { DoctorReport, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { type Operation, withRun } from "../operations/operation.ts";
import { mayNameCode } from "../text/terms.ts";
import type { TreeFreshnessOptions } from "./freshness/tree-freshness.ts";
import { withFreshness } from "./freshness/with-freshness.ts";
import { withMergeTarget, withOldIdentities } from "./old-identities.ts";
import { withStaleness } from "./staleness.ts";

/** Makes the operations of a server resolve folders to projects, mark stale hits and read the working tree. */
export function decorateServed(
  operations: readonly Operation[],
  { findings = [], freshness: { limitMs = LIMITS.freshnessMs, dataDir } = {} }: ClientSide = {},
): readonly Operation[] {
  const identified = operations
    .map(withStaleness)
    .map((operation) => withFindings(operation, findings))
    .map((operation) => withOldIdentities(operation, operations))
    .map(withMergeTarget)
    .map(withIdentity);
  const find = (wanted: string) => identified.find(({ name }) => name === wanted);
  return identified.map((operation) => skipAnchors(operation, withFreshness(operation, { treeOf, find, limitMs, dataDir })));
}

/** What the client side adds to operations. */
export interface ClientSide {
  /** Findings of the client side that the doctor reports. */
  readonly findings?: readonly Finding[] | undefined;
  readonly freshness?: Partial<TreeFreshnessOptions> | undefined;
}

/** Adds findings of the client side to the report of the doctor, which may run on a server. */
function withFindings(operation: Operation, added: readonly Finding[]): Operation {
  if (operation.name !== "doctor" || added.length === 0) return operation;
  return withRun(operation, async (cairn, input, context) => {
    const report = (await operation.run(cairn, input, context)) as DoctorReport;
    const known = new Set(report.findings.map(({ subject }) => subject));
    const findings = [...report.findings, ...added.filter(({ subject }) => !known.has(subject))];
    const healthy = report.healthy && !findings.some(({ severity }) => severity === "problem");
    return { ...report, healthy, findings, checks: [...report.checks, "configuration"] } satisfies DoctorReport;
  });
}

/**
 * Makes an operation resolve the folder in its input to the project of that folder. A path that is not a folder of this machine is passed
 * unchanged: records of a deleted project stay readable. Only checkpoint_save refuses it, because no later session would search under a
 * mistyped path. A server cannot check it.
 */
export function withIdentity(operation: Operation): Operation {
  return withRun(operation, async (cairn, input, context) => {
    const { projectPath: path } = input as Readonly<Record<string, unknown>>;
    if (typeof path !== "string") return operation.run(cairn, input, context);
    const folder = folderAt(path);
    if (!folder && operation.name === "checkpoint_save")
      throw new CairnError(
        "invalid_input",
        `project_path: there is no folder ${JSON.stringify(path.slice(0, 300))}. Give the path of an existing one.`,
      );
    if (!folder) return operation.run(cairn, input, context);
    const { repository, tree } = identityOf(path, folder);
    const projectPath = concernsCode(operation, input) ? tree : repository;
    // Records belong to the repository; they are compared with the code of the working tree.
    const codePath = tree !== repository && "code_path" in operation.input.shape && { codePath: tree };
    return operation.run(cairn, { ...codePath, ...input, projectPath, ...fileIn(projectPath, input) }, context);
  });
}

/** Milliseconds that a resolved project is reused. A new repository around a folder is noticed after that time. */
const IDENTITY_MS = 5_000;
/** Folders whose project is remembered. */
const IDENTITIES_MAX = 1_000;

const identities = new Map<
  string,
  { readonly identity: ProjectIdentity; readonly folder: Stats; readonly hasGit: boolean; readonly until: number }
>();

/** Returns the working tree of a folder of this machine. */
function treeOf(path: string): string | undefined {
  const folder = folderAt(path);
  return folder && identityOf(path, folder).tree;
}

/** Makes a save that has nothing to anchor skip the search for anchors: its texts name no code, and its folder is not in a repository. */
function skipAnchors(operation: Operation, anchoring: Operation): Operation {
  if (operation.name !== "checkpoint_save") return anchoring;
  return withRun(anchoring, (cairn, input, context) => {
    const { projectPath, summary, description = "", context: pairs = {}, anchors } = input as Readonly<Record<string, unknown>>;
    const folder = anchors === undefined ? folderAt(projectPath as string) : undefined;
    const isPlain = folder && !hasRepository(projectPath as string, folder);
    const texts = [summary, description, ...Object.values(pairs as object)] as readonly string[];
    const isBare = isPlain === true && !texts.some(mayNameCode);
    return isBare ? operation.run(cairn, { ...input, anchors: [] }, context) : anchoring.run(cairn, input, context);
  });
}

function hasRepository(path: string, folder: Stats): boolean {
  identityOf(path, folder);
  return identities.get(path)?.hasGit === true;
}

/** Returns the project of a folder. It was resolved a moment ago for most calls; a path that leads to another folder now is resolved again. */
function identityOf(path: string, folder: Stats): ProjectIdentity {
  const known = identities.get(path);
  if (known && known.until > performance.now() && known.folder.ino === folder.ino && known.folder.dev === folder.dev) return known.identity;
  if (identities.size >= IDENTITIES_MAX) identities.clear();
  const identity = identifyProject(path);
  identities.set(path, { identity, folder, hasGit: gitDataFolder(identity.tree) !== undefined, until: performance.now() + IDENTITY_MS });
  return identity;
}

/** Resolves an absolute path of a file: links may lead into the project from elsewhere. */
function fileIn(tree: string, { path }: Readonly<Record<string, unknown>>): { path?: string } {
  if (typeof path !== "string" || !isAbsolute(path)) return {};
  try {
    const real = realpathSync(path);
    return real.startsWith(tree + sep) ? { path: relative(tree, real).replaceAll(sep, "/") } : {};
  } catch {
    return {}; // deleted since it was indexed, or never there
  }
}

/** The code index belongs to the working tree, everything else to the repository. */
function concernsCode({ name }: Operation, input: Readonly<Record<string, unknown>>): boolean {
  return name.startsWith("code_") || input.collection === "code";
}

/** Returns the folder at a path. A path that cannot be looked up, for a NUL character or its length, names none. */
function folderAt(path: string): Stats | undefined {
  try {
    const stats = statSync(path);
    return stats.isDirectory() ? stats : undefined;
  } catch {
    return undefined;
  }
}
