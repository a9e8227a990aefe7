import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { resolveScope } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { damagedNote, text } from "../operations/schemas.ts";
import { PlaceFields } from "../operations/write-schemas.ts";

const Scope = {
  ...PlaceFields,
  collection: z.enum(["checkpoints", "knowledge", "code"]).default("checkpoints").describe("Which records."),
};
const SwitchOutput = z.object({
  version_id: z.int(),
  model: z.string(),
  embedded: z.int().describe("Texts embedded by this call: records, and parts of long ones."),
  switched: z.boolean().describe("Whether searches use this version now."),
});
/** Milliseconds of a fill: a large collection takes a local model hours. Without `wait` it continues in the background. */
const FILL_TIMEOUT_MS = 12 * 60 * 60 * 1_000;

export const embeddingsList = operation({
  name: "embeddings_list",
  summary: "List the embedding versions of a collection with model and progress.",
  input: z.strictObject(Scope),
  output: z.object({
    versions: z.array(
      z.object({
        version_id: z.int(),
        model: z.string(),
        version: z.string(),
        dimension: z.int(),
        is_current: z.boolean(),
        available: z.boolean(),
        records: z.int(),
        vectors: z.int().describe("Records whose whole text has a vector."),
        parts: z.int().describe("Parts of long records."),
        part_vectors: z.int().describe("Parts that have a vector."),
        created_at: z.string(),
      }),
    ),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  cli: { examples: ["cairn embeddings list", "cairn embeddings list --collection code"] },
  render: ({ versions }) =>
    versions.length === 0
      ? "This collection has no embeddings yet."
      : versions
          .map(
            (version) =>
              `${version.is_current ? "*" : " "} ${version.version_id}  ${version.model} ${version.version} (${version.dimension})  ${version.vectors}/${version.records} vectors${version.parts > 0 ? `, ${version.part_vectors}/${version.parts} of parts` : ""}${version.available ? "" : ", model not available"}`,
          )
          .join("\n"),
  run: async (cairn, input, context) => ({ versions: await cairn.embeddings.list(resolveScope(input, context.mayTouch)) }),
});

export const embeddingsUpgrade = operation({
  name: "embeddings_upgrade",
  summary: "Re-embed a collection with another model, then switch searches to it.",
  description: "Searches use the old vectors until every record has a new one. An interrupted upgrade resumes when repeated.",
  input: z.strictObject({
    ...Scope,
    model: text(LIMITS.idChars, 1).describe("minilm, static, or a configured model."),
    wait: z.boolean().default(true).describe("false: return at once and continue in the background."),
  }),
  output: SwitchOutput,
  access: "write",
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: { positional: ["model"], examples: ["cairn embeddings upgrade minilm", "cairn embeddings upgrade minilm --collection code"] },
  render: renderSwitch,
  run: async (cairn, { wait, ...input }, context) =>
    cairn.embeddings.upgrade(resolveScope(input, context.mayTouch), wait ? context : { background: true }),
});

export const embeddingsRollback = operation({
  name: "embeddings_rollback",
  summary: "Switch back to an earlier embedding version.",
  input: z.strictObject({ ...Scope, version_id: z.int().min(1).optional().describe("Default: the newest before the current one.") }),
  output: SwitchOutput,
  access: "write",
  annotations: { idempotent: false },
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: { examples: ["cairn embeddings rollback"] },
  render: renderSwitch,
  run: async (cairn, input, context) => cairn.embeddings.rollback(resolveScope(input, context.mayTouch), context),
});

export const embeddingsVerify = operation({
  name: "embeddings_verify",
  summary: "Check every vector of the current version; recompute damaged and missing ones.",
  input: z.strictObject(Scope),
  output: z.object({
    checked: z.int().describe("Vectors of records and of parts of long ones."),
    damaged: z.array(z.string()).describe("Ids of records with damaged vectors."),
    recomputed: z.int(),
    missing: z.int(),
    mirror_repaired: z.int().describe("Rows of embedding_records that did not match and were rewritten."),
    damaged_records: z
      .array(z.object({ id: z.string(), reason: z.string() }))
      .describe("Records that do not match their checksums; cairn doctor --repair quarantines them."),
  }),
  access: "write",
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: {
    examples: ["cairn embeddings verify", "cairn embeddings verify --collection knowledge --scope shared"],
    attention: ({ damaged, missing, damaged_records }) =>
      (damaged as readonly unknown[]).length > 0 || Number(missing) > 0 || (damaged_records as readonly unknown[]).length > 0,
  },
  render: ({ checked, damaged, recomputed, missing, mirror_repaired, damaged_records }) =>
    [
      `${checked} vectors checked, ${damaged.length} damaged, ${recomputed} recomputed${missing > 0 ? `, ${missing} still missing` : ""}.`,
      ...(mirror_repaired > 0 ? [`${mirror_repaired} rows of embedding_records did not match and were rewritten.`] : []),
      ...damagedNote(damaged_records.length > 0 ? damaged_records : undefined),
    ].join("\n"),
  run: async (cairn, input, context) => cairn.embeddings.verify(resolveScope(input, context.mayTouch), context),
});

export const embeddingsPrune = operation({
  name: "embeddings_prune",
  summary: "Delete every embedding version except the current one.",
  input: z.strictObject(Scope),
  output: z.object({ versions: z.int(), vectors: z.int() }),
  access: "write",
  annotations: { destructive: true },
  toolset: "admin",
  cli: { examples: ["cairn embeddings prune"] },
  render: ({ versions, vectors }) => `Deleted ${versions} old versions with ${vectors} vectors.`,
  run: async (cairn, input, context) => cairn.embeddings.prune(resolveScope(input, context.mayTouch)),
});

export const embeddingsOperations = [embeddingsList, embeddingsUpgrade, embeddingsRollback, embeddingsVerify, embeddingsPrune];

function renderSwitch(result: z.output<typeof SwitchOutput>): string {
  return result.switched
    ? `Searches now use version ${result.version_id} (${result.model}); ${result.embedded} texts embedded.`
    : `Version ${result.version_id} (${result.model}) is being filled in the background. See: cairn embeddings list`;
}
