import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectId, text } from "../operations/schemas.ts";
import { FilterFields } from "./wire-schemas.ts";

const VersionOutput = z.object({
  version_id: z.int(),
  model: z.string(),
  dimension: z.int(),
  is_current: z.boolean().describe("Whether searches use it."),
  vectors: z.int(),
});

const StatsOutput = z.object({
  files: z.int(),
  chunks: z.int(),
  definitions: z.int(),
  references: z.int(),
  bytes: z.int(),
  renames: z.int(),
  generation: z.int(),
  last_indexed_at: z.string().optional(),
  languages: z.array(z.object({ language: z.string(), files: z.int(), chunks: z.int() })),
  embeddings: z.array(VersionOutput).describe("A newer version that is not current is being filled."),
  pending: z.int().describe("Batches that wait to be indexed."),
  running: z.int(),
});

export const codeStats = operation({
  name: "code_stats",
  summary: "Show index contents and embedding progress.",
  input: z.strictObject({ project_path: ProjectId }),
  output: StatsOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "code",
  http: { method: "GET", path: "/stats" },
  cli: { examples: ["cairn code stats"] },
  render: ({ files, chunks, definitions, references, bytes, last_indexed_at, languages, embeddings, pending, running }) =>
    [
      files === 0
        ? "Nothing is indexed yet."
        : `${files} files in ${chunks} chunks, ${definitions} definitions, ${references} references, ${bytes} bytes.`,
      ...(last_indexed_at ? [`Last indexed ${last_indexed_at}.`] : []),
      ...languages.map((one) => `  ${one.language}  ${one.files} files, ${one.chunks} chunks`),
      ...embeddings.map(({ model, is_current, vectors }) => `Vectors by ${model}${is_current ? ", in use" : ""}: ${vectors} of ${chunks}.`),
      ...(pending + running > 0 ? [`${running} batches are being indexed, ${pending} wait.`] : []),
    ].join("\n"),
  async run(cairn, { projectPath }) {
    const [counts, { pending, running }] = await Promise.all([cairn.code.stats({ projectPath }), cairn.indexing.depth(projectPath)]);
    return { ...counts, pending, running };
  },
});

export const codeStatus = operation({
  name: "code_status",
  summary: "Show the number of queued index jobs, of one project or of all.",
  input: z.strictObject({ project_path: ProjectId.optional() }),
  output: z.object({ pending: z.int(), running: z.int(), capacity: z.int().describe("The capacity of the queue, over all projects.") }),
  access: "read",
  toolset: "none",
  http: { method: "GET", path: "/status" },
  cli: { hidden: true },
  render: ({ pending, running, capacity }) => `${running} batches are being indexed, ${pending} wait; the capacity is ${capacity}.`,
  async run(cairn, { projectPath }, { allProjects }) {
    if (projectPath === undefined && !allProjects)
      throw new CairnError("forbidden", "This key is limited to projects. Name one with project_path.");
    return cairn.indexing.depth(projectPath);
  },
});

export const codeClean = operation({
  name: "code_clean",
  summary: "Remove files from the index: the matches of a glob, or all. Files on disk are not deleted.",
  input: z.strictObject({ project_path: ProjectId, glob: FilterFields.glob }),
  output: z.object({ removed: z.int() }),
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "code",
  http: { method: "POST", path: "/clean" },
  cli: { positional: ["glob"], examples: ["cairn code clean 'dist/**'", "cairn code clean"] },
  render: ({ removed }) => `${removed} files were removed from the index.`,
  run: async (cairn, { projectPath, glob }) => cairn.code.clean({ projectPath, glob }),
});

export const codeCompact = operation({
  name: "code_compact",
  summary: "Remove orphaned rows and reclaim disk space.",
  input: z.strictObject({ project_path: ProjectId }),
  output: z.object({
    orphans: z
      .object({ rows: z.int(), terms: z.int(), vectors: z.int() })
      .describe("All are 0 unless another program altered the database."),
    forgotten_renames: z.int(),
    freed_bytes: z.int().describe("Bytes returned to the file system."),
  }),
  access: "write",
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "code",
  http: { method: "POST", path: "/compact" },
  cli: { examples: ["cairn code compact"] },
  render: ({ orphans: { rows, terms, vectors }, forgotten_renames, freed_bytes }) =>
    `Removed ${rows} rows, ${terms} full-text entries and ${vectors} vectors that were orphaned, and ${forgotten_renames} old renames. The database is ${(freed_bytes / 1e6).toFixed(1)} MB smaller.`,
  run: async (cairn, { projectPath }) => cairn.code.compact({ projectPath }),
});

/** The larger model takes hours for a large repository. */
const REEMBED_TIMEOUT_MS = 12 * 60 * 60 * 1_000;

export const codeReembed = operation({
  name: "code_reembed",
  summary: "Re-embed the indexed code with a larger model, then search with it.",
  description: "Searches use the previous vectors until every chunk has a new one. An interrupted call continues when it is repeated.",
  input: z.strictObject({
    project_path: ProjectId,
    model: text(LIMITS.idChars, 1).optional().describe("Default: the best available model."),
    wait: z
      .boolean()
      .default(true)
      .describe("false: return at once and continue in the background. The code statistics show the progress."),
  }),
  output: z.object({ version_id: z.int(), model: z.string(), embedded: z.int(), switched: z.boolean() }),
  access: "write",
  limits: { timeoutMs: REEMBED_TIMEOUT_MS },
  toolset: "code",
  cli: { examples: ["cairn code reembed", "cairn code reembed --model minilm"] },
  render: ({ model, embedded, switched }) =>
    switched
      ? `Searches use ${model} now; ${embedded} chunks were embedded.`
      : `${model} is embedding in the background. See: cairn code stats`,
  run: async (cairn, { projectPath, model, wait }, context) =>
    cairn.embeddings.upgrade({ projectPath, collection: "code", model }, wait ? context : { background: true }),
});

export const codeUpkeepOperations = [codeStats, codeStatus, codeClean, codeCompact, codeReembed];
