import { call } from "../api/call.ts";
import { projectName } from "../parts/format.ts";
import { hrefOf } from "../state/route.ts";

/** A hit of the search over everything. */
export interface Found {
  readonly kind: "checkpoint" | "knowledge" | "code";
  readonly text: string;
  readonly where: string;
  readonly href: string;
  /** No record matches well; this one is among the nearest. */
  readonly isWeak: boolean;
}

const EACH = 5;

/**
 * Searches checkpoints, knowledge and code. Without a project, checkpoints of all projects and the shared knowledge: code belongs to a
 * project. A search that fails leaves its part out; the page «Search» then shows the reason.
 */
export async function findEverywhere(query: string, project: string | undefined, signal: AbortSignal): Promise<readonly Found[]> {
  const parts = await Promise.all([
    checkpoints(query, project, signal).catch(() => []),
    knowledge(query, project, signal).catch(() => []),
    project === undefined ? [] : code(query, project, signal).catch(() => []),
  ]);
  return parts.flat();
}

async function checkpoints(query: string, project: string | undefined, signal: AbortSignal): Promise<Found[]> {
  const { results, match } =
    project === undefined
      ? await call("checkpoint_search_all", { query, top_k: EACH }, signal)
      : await call("checkpoint_search", { project_path: project, query, top_k: EACH }, signal);
  return results.map(({ checkpoint: { id, summary, project_path } }) => ({
    kind: "checkpoint",
    text: summary,
    where: projectName(project_path),
    href: hrefOf("timeline", { project: project_path, id }),
    isWeak: match === "none",
  }));
}

async function knowledge(query: string, project: string | undefined, signal: AbortSignal): Promise<Found[]> {
  const scope = project === undefined ? ({ scope: "shared" } as const) : { project_path: project };
  const { results, match } = await call("knowledge_search", { ...scope, query, top_k: EACH }, signal);
  return results.map(({ knowledge: { id, question, kind }, scope: from }) => ({
    kind: "knowledge",
    text: question,
    where: from === "shared" ? `shared ${kind}` : kind,
    href: hrefOf("knowledge", { project: from === "shared" ? undefined : project, id }),
    isWeak: match === "none",
  }));
}

async function code(query: string, project: string, signal: AbortSignal): Promise<Found[]> {
  const { results, match } = await call("code_search", { project_path: project, query, top_k: EACH }, signal);
  return results.map(({ path, start_line, symbol }) => ({
    kind: "code",
    text: symbol ?? path,
    where: `${path}:${start_line}`,
    href: hrefOf("code", { q: query, file: path, line: String(start_line) }),
    isWeak: match === "none",
  }));
}
