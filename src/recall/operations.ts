import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { located } from "../model/place.ts";
import { operation } from "../operations/operation.ts";
import { damagedNote, PlaceFields, text } from "../operations/schemas.ts";

const Scope = {
  ...PlaceFields,
  collection: z.enum(["checkpoints", "knowledge", "code"]).default("checkpoints").describe("Which records."),
};
const MoveOutput = z.object({
  version_id: z.int(),
  model: z.string(),
  embedded: z.int().describe("Records that were embedded by this call."),
  switched: z.boolean().describe("Whether searches use this version now."),
});
/** Filling a large collection with a local model takes hours; it goes on in the background when not waited for. */
const FILL_TIMEOUT_MS = 12 * 60 * 60 * 1_000;

export const embeddingsList = operation({
  name: "embeddings_list",
  summary: "Show the embedding versions of a collection: model, progress, which one searches use.",
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
        vectors: z.int(),
        created_at: z.string(),
      }),
    ),
  }),
  access: "read",
  annotations: { readOnly: true, destructive: false, idempotent: true },
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  cli: { examples: ["cairn embeddings list", "cairn embeddings list --collection code"] },
  render: ({ versions }) =>
    versions.length === 0
      ? "Nothing is embedded in this collection yet."
      : versions
          .map(
            (version) =>
              `${version.is_current ? "*" : " "} ${version.version_id}  ${version.model} ${version.version} (${version.dimension})  ${version.vectors}/${version.records} vectors${version.available ? "" : ", model not available here"}`,
          )
          .join("\n"),
  run: async (cairn, input, context) => ({ versions: await cairn.embeddings.list(located(input, context.mayTouch)) }),
});

export const embeddingsUpgrade = operation({
  name: "embeddings_upgrade",
  summary: "Re-embed a collection with another model beside the current one, then switch.",
  description: "Searches use the old vectors until every record has a new one. A call that was interrupted goes on when repeated.",
  input: z.strictObject({
    ...Scope,
    model: text(LIMITS.idChars, 1).describe("minilm, static, or the name of a configured model."),
    wait: z.boolean().default(true).describe("false: answer at once and go on in the background."),
  }),
  output: MoveOutput,
  access: "write",
  annotations: { readOnly: false, destructive: false, idempotent: true },
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: { positional: ["model"], examples: ["cairn embeddings upgrade minilm", "cairn embeddings upgrade minilm --collection code"] },
  render: renderMove,
  run: async (cairn, { wait, ...input }, context) =>
    cairn.embeddings.upgrade(located(input, context.mayTouch), wait ? context : { background: true }),
});

export const embeddingsRollback = operation({
  name: "embeddings_rollback",
  summary: "Go back to an earlier embedding version that was not pruned.",
  input: z.strictObject({ ...Scope, version_id: z.int().min(1).optional().describe("Default: the newest one before the current.") }),
  output: MoveOutput,
  access: "write",
  annotations: { readOnly: false, destructive: false, idempotent: false },
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: { examples: ["cairn embeddings rollback"] },
  render: renderMove,
  run: async (cairn, input, context) => cairn.embeddings.rollback(located(input, context.mayTouch), context),
});

export const embeddingsVerify = operation({
  name: "embeddings_verify",
  summary: "Check every vector of the current version; recompute those that are damaged or missing.",
  input: z.strictObject(Scope),
  output: z.object({
    checked: z.int(),
    damaged: z.array(z.string()),
    recomputed: z.int(),
    missing: z.int(),
    mirror_repaired: z.int().describe("Rows of embedding_records that did not match and were written again."),
    damaged_records: z
      .array(z.object({ id: z.string(), reason: z.string() }))
      .describe("Records that do not match their checksums; cairn doctor --repair sets them aside."),
  }),
  access: "write",
  annotations: { readOnly: false, destructive: false, idempotent: true },
  limits: { timeoutMs: FILL_TIMEOUT_MS },
  toolset: "admin",
  cli: {
    examples: ["cairn embeddings verify", "cairn embeddings verify --collection knowledge --scope shared"],
    attention: ({ damaged, missing, damaged_records }) =>
      (damaged as readonly unknown[]).length > 0 || Number(missing) > 0 || (damaged_records as readonly unknown[]).length > 0,
  },
  render: ({ checked, damaged, recomputed, missing, mirror_repaired, damaged_records }) =>
    [
      `${checked} vectors checked, ${damaged.length} damaged, ${recomputed} recomputed${missing > 0 ? `, ${missing} still missing (is the model available?)` : ""}.`,
      ...(mirror_repaired > 0 ? [`${mirror_repaired} rows of embedding_records did not match and were written again.`] : []),
      ...damagedNote(damaged_records.length > 0 ? damaged_records : undefined),
    ].join("\n"),
  run: async (cairn, input, context) => cairn.embeddings.verify(located(input, context.mayTouch), context),
});

export const embeddingsPrune = operation({
  name: "embeddings_prune",
  summary: "Delete all embedding versions but the current one.",
  input: z.strictObject(Scope),
  output: z.object({ versions: z.int(), vectors: z.int() }),
  access: "write",
  annotations: { readOnly: false, destructive: true, idempotent: true },
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "admin",
  cli: { examples: ["cairn embeddings prune"] },
  render: ({ versions, vectors }) => `Deleted ${versions} old versions with ${vectors} vectors.`,
  run: async (cairn, input, context) => cairn.embeddings.prune(located(input, context.mayTouch)),
});

export const embeddingsOperations = [embeddingsList, embeddingsUpgrade, embeddingsRollback, embeddingsVerify, embeddingsPrune];

function renderMove(moved: z.output<typeof MoveOutput>): string {
  return moved.switched
    ? `Searches use version ${moved.version_id} (${moved.model}) now; ${moved.embedded} records were embedded.`
    : `Version ${moved.version_id} (${moved.model}) is being filled in the background. See: cairn embeddings list`;
}
