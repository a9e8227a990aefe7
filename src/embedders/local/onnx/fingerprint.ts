import { createHash } from "node:crypto";
import { createReadStream, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { assertRegularFile } from "../../../files/regular-file.ts";
import type { ModelFolder } from "./model-folder.ts";

/** The state of a file when it was hashed. */
export interface FileStamp {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

export interface Fingerprint {
  /** Changes with every byte of the files and with every setting that changes a vector. */
  readonly version: string;
  readonly files: readonly FileStamp[];
}

/** Bytes per read: short enough that hashing never blocks other work for long. */
const CHUNK_BYTES = 1024 * 1024;

/** Hashes the model, its external data and the tokenizer, so that changed files never share a vector space with the old ones. */
export async function fingerprint(folder: ModelFolder): Promise<Fingerprint> {
  const files = [folder.tokenizerFile, ...modelFiles(folder.modelFile)].map(stampOf);
  const { dimension, maxTokens, pooling, defaultPooling, queryPrefix, documentPrefix } = folder;
  const hash = createHash("sha256");
  hash.update(JSON.stringify({ dimension, maxTokens, pooling, defaultPooling, queryPrefix, documentPrefix }));
  for (const { path } of files) hash.update(`\n${basename(path)} ${await hashFile(path)}`);
  return { version: `onnx-${hash.digest("hex").slice(0, 16)}`, files };
}

/** Returns the first file that is no longer as it was when it was hashed. */
export function changedFile(files: readonly FileStamp[]): string | undefined {
  return files.find(({ path, size, mtimeMs }) => {
    const now = statSync(path, { throwIfNoEntry: false });
    return now?.size !== size || now.mtimeMs !== mtimeMs;
  })?.path;
}

/** Returns the model and its external data files, which are named after it: model.onnx_data, model.onnx.data. */
function modelFiles(modelFile: string): string[] {
  const names = readdirSync(dirname(modelFile)).filter((name) => name.startsWith(basename(modelFile)));
  return names.sort().map((name) => join(dirname(modelFile), name));
}

function stampOf(path: string): FileStamp {
  assertRegularFile(path);
  const { size, mtimeMs } = statSync(path);
  return { path, size, mtimeMs };
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
