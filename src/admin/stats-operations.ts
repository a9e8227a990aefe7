import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectPath } from "../operations/schemas.ts";
import { megabytes } from "../text/megabytes.ts";

export const statsRead = operation({
  name: "stats",
  summary: "Show counts, sizes and embedding costs: cache hits, tokens, dollars.",
  description: "Embedding costs are those of this process since it started. A key for some projects sees only these.",
  input: z.strictObject({
    of_project: ProjectPath.optional().describe("Only this project. Default: all that the caller may see."),
    limit: z.int().min(1).max(LIMITS.listMax).default(20),
  }),
  output: z.object({
    projects: z.array(
      z.object({
        project_path: z.string(),
        bytes: z.int().optional(),
        checkpoints: z.int(),
        knowledge: z.int(),
        vectors: z.int().describe("Checkpoints and knowledge records with a vector. Parts of long ones are not counted."),
        vectors_missing: z.int(),
        model: z.string().optional(),
      }),
    ),
    shared: z
      .object({
        bytes: z.int().optional(),
        knowledge: z.int(),
        vectors: z.int(),
        vectors_missing: z.int(),
        model: z.string().optional(),
      })
      .optional()
      .describe("Shared knowledge."),
    total: z.int(),
    partial: z.boolean().describe("True if some projects could not be read; degraded has the reasons."),
    degraded: z.array(z.string()),
    embedding: z
      .object({
        cache_hits: z.int(),
        cache_misses: z.int(),
        cache_hit_ratio: z.number().optional(),
        texts: z.int(),
        tokens: z.int(),
        dollars: z.number(),
        saved_tokens: z.int(),
        saved_dollars: z.number(),
      })
      .optional()
      .describe("Sums over all projects, only for callers that may see all of them."),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  http: { method: "GET", path: "/v1/stats" },
  cli: { examples: ["cairn stats", "cairn stats --of-project /home/me/app --json"] },
  render: ({ projects, shared, total, degraded, embedding }) =>
    [
      total === 0 && !shared
        ? "Nothing is stored yet."
        : `${total} ${total === 1 ? "project" : "projects"}${total > projects.length ? `, ${projects.length} shown` : ""}:`,
      ...projects.map(
        ({ project_path, checkpoints, knowledge, ...figures }) =>
          `  ${project_path}: ${checkpoints} ${checkpoints === 1 ? "checkpoint" : "checkpoints"}, ${knowledge > 0 ? `${knowledge} knowledge ${knowledge === 1 ? "record" : "records"}, ` : ""}${sizes(figures)}`,
      ),
      ...degraded.map((part) => `Note: ${part}.`),
      ...(shared ? [`Shared: ${shared.knowledge} knowledge records, ${sizes(shared)}`] : []),
      ...(embedding && embedding.texts + embedding.cache_hits > 0
        ? [
            `Embedding in this process: ${embedding.texts} texts, ${embedding.tokens} tokens, $${embedding.dollars.toFixed(4)}; cache ${embedding.cache_hits} of ${embedding.cache_hits + embedding.cache_misses}, which saved ${embedding.saved_tokens} tokens, $${embedding.saved_dollars.toFixed(4)}`,
          ]
        : []),
    ].join("\n"),
  run: (cairn, { ofProject, limit }, { mayTouch, allProjects }) =>
    cairn.stats.read({ projectPath: ofProject, limit, mayTouch, allProjects }),
});

export const projectList = operation({
  name: "project_list",
  summary: "List the projects that have stored something, the most recently changed first.",
  input: z.strictObject({ limit: z.int().min(1).max(LIMITS.listMax).default(20) }),
  output: z.object({
    projects: z.array(
      z.object({
        project_path: z.string(),
        checkpoints: z.int(),
        knowledge: z.int(),
        code_files: z.int().describe("Files in the code index."),
        last_activity_at: z.iso.datetime().optional(),
      }),
    ),
    total: z.int(),
    partial: z.boolean().describe("True if some projects could not be read; degraded has the reasons."),
    degraded: z.array(z.string()),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  cli: {
    examples: ["cairn project list", "cairn projects --limit 5"],
    view: {
      table: "projects",
      columns: ["project_path", "checkpoints", "knowledge", "code_files", "last_activity_at"],
      optional: ["code_files", "knowledge"],
    },
  },
  render: ({ projects, total, degraded }) =>
    [
      total === 0 ? "No projects." : "",
      ...projects.map(
        ({ project_path, checkpoints, knowledge, code_files, last_activity_at }) =>
          `${project_path}: ${checkpoints} checkpoints, ${knowledge} knowledge records, ${code_files} indexed files${last_activity_at ? `, last change ${last_activity_at}` : ""}`,
      ),
      total > projects.length ? `${total - projects.length} more` : "",
      ...degraded.map((part) => `Note: ${part}.`),
    ]
      .filter(Boolean)
      .join("\n"),
  run: (cairn, { limit }, { mayTouch }) => cairn.stats.projects({ limit, mayTouch }),
});

interface Sizes {
  readonly vectors: number;
  readonly vectors_missing: number;
  readonly model?: string | undefined;
  readonly bytes?: number | undefined;
}

function sizes({ vectors, vectors_missing, model, bytes }: Sizes): string {
  return `${vectors} vectors${model ? ` of ${model}` : ""}${vectors_missing > 0 ? `, ${vectors_missing} missing` : ""}${bytes === undefined ? "" : `, ${megabytes(bytes)}`}`;
}

export const statsOperations = [statsRead, projectList];
