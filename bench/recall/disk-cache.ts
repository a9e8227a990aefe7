import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256Hex } from "../../src/model/ids.ts";
import type { Embedder } from "../../src/ports/embedder.ts";

/** Bytes of a key in the file: the first half of the text's SHA-256. */
const KEY_BYTES = 16;

/** Caches an embedder's vectors in a file, because MiniLM embeds about 15 texts per second. A half-written last entry is ignored. */
export function diskCache(inner: Embedder, folder: string): Embedder {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${inner.model}-${inner.version}.bin`.replaceAll("/", "_"));
  const entryBytes = KEY_BYTES + 4 * inner.dimension;
  const cache = new Map<string, Float32Array>();
  const stored = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  for (let at = 0; at + entryBytes <= stored.length; at += entryBytes) {
    const bytes = stored.subarray(at + KEY_BYTES, at + entryBytes);
    const vector = new Float32Array(inner.dimension);
    new Uint8Array(vector.buffer).set(bytes);
    cache.set(stored.toString("hex", at, at + KEY_BYTES), vector);
  }
  const keyOf = (text: string) => sha256Hex(text).slice(0, 2 * KEY_BYTES);
  return {
    ...inner,
    async embed(texts, options) {
      const missing = [...new Set(texts.filter((text) => !cache.has(keyOf(text))))];
      const vectors = missing.length > 0 ? await inner.embed(missing, options) : [];
      for (const [index, text] of missing.entries()) {
        const vector = vectors[index]!;
        cache.set(keyOf(text), vector);
        appendFileSync(
          file,
          Buffer.concat([Buffer.from(keyOf(text), "hex"), Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)]),
        );
      }
      return texts.map((text) => cache.get(keyOf(text))!);
    },
  };
}
