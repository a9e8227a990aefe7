import type { FileWrite, PackedFileWrite } from "../../ports/code-store.ts";
import { packFile, unpackFile } from "../../text/pack-file.ts";

/** Returns a file in its stored form. */
export function toPacked(file: FileWrite | PackedFileWrite): PackedFileWrite {
  if ("packed" in file) return file;
  const { chunks, symbols, ...facts } = file;
  const packed = packFile(file.path, { chunks: chunks.map(({ chunk }) => chunk), symbols });
  return { ...facts, packed, vectors: chunks.map(({ vectors }) => vectors) };
}

/** Returns a file with its chunks and symbols. */
export function toPlain(file: FileWrite | PackedFileWrite): FileWrite {
  if (!("packed" in file)) return file;
  const { packed, vectors, ...facts } = file;
  const { chunks, symbols } = unpackFile(packed);
  return { ...facts, chunks: chunks.map((chunk, index) => ({ chunk, vectors: vectors[index]! })), symbols };
}
