import type { ChunkedFile } from "../model/code-chunk.ts";
import { chunkFingerprint, chunkText } from "../model/code-index.ts";
import type { PackedFile } from "../model/packed-file.ts";
import type { UnembeddedChunks } from "../model/unembedded-chunks.ts";
import type { Embedder } from "../ports/embedder.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import { unpack } from "../text/index-text.ts";
import { packFile } from "../text/pack-file.ts";

/** Everything that the index stores about a file, except the vectors of chunks that are still to be embedded. */
export interface DerivedFile {
  readonly language: string;
  readonly how: ChunkedFile["how"];
  readonly notice?: string | undefined;
  readonly packed: PackedFile;
  /** `later`: the caller adds them to the stored chunks. */
  readonly vectors: ThreadVectors | ToEmbed | "later";
}

/** The vectors of all chunks, one after the other, and the characters that were embedded. */
export interface ThreadVectors {
  readonly dimension: number;
  readonly values: Float32Array;
  readonly chars: number;
}

/** What the caller embeds: the text of each chunk, and its fingerprint, by which a vector of an equal chunk is found. */
export interface ToEmbed {
  readonly texts: readonly string[];
  readonly fingerprints: readonly string[];
}

/** Computes the stored form of a file that was cut into chunks. */
export function deriveFile(path: string, { chunks, symbols, language, how, notice }: ChunkedFile): DerivedFile & { vectors: ToEmbed } {
  return {
    language,
    how,
    ...(notice !== undefined && { notice }),
    packed: packFile(path, { chunks, symbols }, yieldToCalls),
    vectors: { texts: chunks.map((chunk) => chunkText(path, chunk)), fingerprints: chunks.map(chunkFingerprint) },
  };
}

/** Computes the stored form of a file whose vectors are added later. */
export function deriveWithoutVectors(path: string, { chunks, symbols, language, how }: ChunkedFile): DerivedFile {
  return { language, how, packed: packFile(path, { chunks, symbols }, yieldToCalls), vectors: "later" };
}

/** Computes the stored form of a file with the vectors of its chunks. */
export async function deriveEmbedded(path: string, file: ChunkedFile, embedder: Embedder): Promise<DerivedFile> {
  const vectors = await embedTexts(
    file.chunks.map((chunk) => chunkText(path, chunk)),
    embedder,
  );
  return { ...deriveWithoutVectors(path, file), vectors };
}

/** Computes the vectors of stored chunks. */
export async function embedStored({ chunks, blocks }: UnembeddedChunks, embedder: Embedder): Promise<ThreadVectors> {
  const texts = blocks.map(unpack);
  const whole = chunks.map(({ path, block, start, length, ...names }) =>
    chunkText(path, { ...names, text: texts[block]!.slice(start, start + length) }),
  );
  return embedTexts(whole, embedder);
}

async function embedTexts(texts: readonly string[], embedder: Embedder): Promise<ThreadVectors> {
  const { dimension } = embedder;
  const values = new Float32Array(texts.length * dimension);
  for (const [place, vector] of (await embedder.embed(texts, { purpose: "document" })).entries()) values.set(vector, place * dimension);
  return { dimension, values, chars: texts.reduce((sum, { length }) => sum + length, 0) };
}
