import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { NewRunCheckpoint } from "../model/run.ts";
import { unstorable } from "./clean.ts";

/** How the bytes of a state are stored. */
export type PayloadEncoding = "raw" | "gzip" | "zstd";

export interface Payload {
  readonly data: Uint8Array;
  readonly encoding: PayloadEncoding;
  /** Bytes before compression. */
  readonly size: number;
}

type Transform = (data: Uint8Array, options: zlib.ZlibOptions) => Promise<Uint8Array>;
const gzip = promisify(zlib.gzip) as Transform;
const gunzip = promisify(zlib.gunzip) as Transform;
/** Only newer Nodes have zstd built in. */
const zstd = "zstdCompress" in zlib ? (promisify(zlib.zstdCompress) as Transform) : undefined;
const unzstd = "zstdDecompress" in zlib ? (promisify(zlib.zstdDecompress) as Transform) : undefined;

/** Checks what every store must refuse alike, and compresses a large state. A small one is given back as it is: the store copies it. */
export function packState(checkpoint: NewRunCheckpoint): Payload | Promise<Payload> {
  assertKey("run id", checkpoint.runId);
  assertKey("node id", checkpoint.nodeId);
  const { state, note } = checkpoint;
  const size = state.byteLength;
  if (size > LIMITS.runStateBytes)
    throw new CairnError(
      "too_large",
      `The state is ${Math.ceil(size / 1e6)} MB; a checkpoint holds at most ${LIMITS.runStateBytes / 1e6} MB. Keep large data in files or tables, and only where to find it in the state.`,
      { details: { kind: "state", size, limit: LIMITS.runStateBytes } },
    );
  if (note && note.length > LIMITS.runNoteChars)
    throw new CairnError("too_large", `The note of a checkpoint may have at most ${LIMITS.runNoteChars} characters.`, {
      details: { kind: "note", size: note.length, limit: LIMITS.runNoteChars },
    });
  return size > LIMITS.runCompressAboveBytes ? compress(state, size) : { data: state, encoding: "raw", size };
}

async function compress(state: Uint8Array, size: number): Promise<Payload> {
  const encoding = zstd ? "zstd" : "gzip";
  // Level 1: a checkpoint is written often and read rarely.
  const data = zstd ? await zstd(state, {}) : await gzip(state, { level: 1 });
  return data.byteLength < size ? { data, encoding, size } : { data: state, encoding: "raw", size };
}

/** The state again, as bytes of its own. Never inflates to more than a state may hold. */
export function unpackState({ data, encoding, size }: Payload): Uint8Array | Promise<Uint8Array> {
  if (encoding === "raw") return sound(new Uint8Array(data), size);
  return decompress(data, encoding).then((state) => sound(state, size));
}

function sound(state: Uint8Array, size: number): Uint8Array {
  if (state.byteLength === size) return state;
  throw new CairnError("unavailable", "A stored checkpoint is damaged: its length is not the one recorded. Resume from an earlier one.", {
    details: { kind: "damaged" },
  });
}

async function decompress(data: Uint8Array, encoding: "gzip" | "zstd"): Promise<Uint8Array> {
  const inflate = encoding === "gzip" ? gunzip : unzstd;
  if (!inflate)
    throw new CairnError("unavailable", "This checkpoint was compressed with zstd, which this Node cannot read. Use Node 22.15 or newer.");
  try {
    return new Uint8Array(await inflate(data, { maxOutputLength: LIMITS.runStateBytes }));
  } catch (cause) {
    throw new CairnError("unavailable", "A stored checkpoint is damaged and cannot be decompressed. Resume from an earlier one.", {
      cause,
      details: { kind: "damaged" },
    });
  }
}

function assertKey(name: string, value: string): void {
  const problem =
    typeof value !== "string" || value === ""
      ? "must not be empty"
      : value.length > LIMITS.runKeyChars
        ? `must have at most ${LIMITS.runKeyChars} characters`
        : unstorable(value);
  if (problem) throw new CairnError("invalid_input", `${name}: ${problem}`, { details: { field: name } });
}
