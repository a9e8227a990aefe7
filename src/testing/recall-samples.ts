import type { Checkpoint } from "../model/checkpoint.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointStore } from "../ports/checkpoint-store.ts";
import type { EmbeddedPiece } from "../ports/embedding-store.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { freshProject } from "./checkpoint-samples.ts";

export const FIRST = { model: "first", version: "1", dimension: 8 };
export const SECOND = { model: "second", version: "1", dimension: 12 };

/** Returns a case that runs on the checkpoints of a new project. */
export function recallCase(name: string, run: (store: CheckpointStore, project: string) => Promise<void>): StorageCase {
  return {
    name: `recall: ${name}`,
    async run(storage) {
      const project = freshProject();
      await run((await storage.create(project)).checkpoints, project);
    },
  };
}

export type Randomness = ReturnType<typeof randomness>;

/** A seeded random generator, so that a failure is reproducible. */
export function randomness(seed: number) {
  let state = seed * 2654435761;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: <T>(list: readonly T[]): T => list[below(list.length)]!,
    vector(dimension: number): Float32Array {
      const vector = Float32Array.from({ length: dimension }, () => next() - 0.5);
      const length = Math.hypot(...vector);
      return vector.map((value) => value / length);
    },
  };
}

/** Paragraphs without the words that the model searches for, up to the limit of a description. */
export function longText(random: Randomness): string {
  const paragraphs = Array.from(
    { length: 4 + random.below(12) },
    (_, index) => `Paragraph ${index}. ${`filler ${random.below(1_000_000)} `.repeat(40)}`,
  );
  return paragraphs.join("\n\n").slice(0, 10_000);
}

/** Returns a unit vector with this cosine to the given one. */
export function vectorAt(cosine: number, to: Float32Array, random: Randomness): Float32Array {
  const other = random.vector(to.length);
  const along = other.reduce((sum, value, i) => sum + value * to[i]!, 0);
  const across = other.map((value, i) => value - along * to[i]!);
  const length = Math.hypot(...across);
  return across.map((value, i) => (value / length) * Math.sqrt(1 - cosine ** 2) + cosine * to[i]!);
}

/** The whole text of a record at its first revision, as it is embedded. */
export function wholeOf(checkpoint: Checkpoint): Omit<EmbeddedPiece, "vector"> {
  return { id: checkpoint.id, revision: 1, piece: 0, text: checkpointText(checkpoint) };
}
