import { promisify } from "node:util";
import type { ZlibOptions } from "node:zlib";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import { once } from "../../model/once.ts";
import type { NewRunCheckpoint, StoredState } from "../../model/run.ts";
import { isBlank, unstorable } from "../../text/untrusted.ts";

/** How a state is stored: bytes or text, as they are or compressed. */
export type PayloadEncoding = "raw" | "gzip" | "zstd" | "text" | "text-gzip" | "text-zstd";

export interface Payload {
  /** What was given, unless it was compressed. */
  readonly data: StoredState;
  readonly encoding: PayloadEncoding;
  /** Bytes before compression, of text as UTF-8. */
  readonly size: number;
}

type Transform = (data: Uint8Array, options: ZlibOptions) => Promise<Uint8Array>;

/** Loads zlib with the first large state: most commands have none. Only newer Nodes have zstd built in. */
const codecs = once(() => {
  const zlib = process.getBuiltinModule("node:zlib");
  const hasZstd = "zstdCompress" in zlib;
  return {
    gzip: promisify(zlib.gzip) as Transform,
    gunzip: promisify(zlib.gunzip) as Transform,
    zstd: hasZstd ? (promisify(zlib.zstdCompress) as Transform) : undefined,
    unzstd: hasZstd ? (promisify(zlib.zstdDecompress) as Transform) : undefined,
  };
});

/** Checks what every store must refuse, and compresses a large state. A small one is returned unchanged: the store copies it. */
export function packState(checkpoint: NewRunCheckpoint): Payload | Promise<Payload> {
  assertKey("run id", checkpoint.runId);
  assertKey("node id", checkpoint.nodeId);
  const { state, note } = checkpoint;
  const size = byteLength(state);
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
  const problem = typeof state === "string" && unstorable(state);
  if (problem) throw new CairnError("invalid_input", `state: ${problem}`, { details: { kind: "state" } });
  return size > LIMITS.runCompressAboveBytes ? compress(state, size) : { data: state, encoding: plainEncoding(state), size };
}

async function compress(state: StoredState, size: number): Promise<Payload> {
  const { zstd, gzip } = codecs();
  const bytes = payloadBytes(state);
  // Level 1: a checkpoint is written often and read rarely.
  const data = zstd ? await zstd(bytes, {}) : await gzip(bytes, { level: 1 });
  if (data.byteLength >= size) return { data: state, encoding: plainEncoding(state), size };
  const way = zstd ? "zstd" : "gzip";
  return { data, encoding: typeof state === "string" ? `text-${way}` : way, size };
}

/** For stores that keep bytes only. */
export function payloadBytes(data: StoredState): Uint8Array {
  return typeof data === "string" ? Buffer.from(data, "utf8") : data;
}

const plainEncoding = (state: StoredState) => (typeof state === "string" ? "text" : "raw");
const byteLength = (state: StoredState) => (typeof state === "string" ? Buffer.byteLength(state) : state.byteLength);
const textOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");

/** The state again; bytes are the caller's own. Never inflates to more than a state may hold. */
export function unpackState({ data, encoding, size }: Payload): StoredState | Promise<StoredState> {
  if (typeof data === "string") return requireSound(data, size);
  if (encoding === "raw") return requireSound(new Uint8Array(data), size);
  if (encoding === "text") return textOf(requireSound(data, size));
  const { gunzip, unzstd } = codecs();
  const state = decompress(data, encoding.endsWith("gzip") ? gunzip : unzstd).then((state) => requireSound(state, size));
  return encoding.startsWith("text") ? state.then(textOf) : state;
}

function requireSound<State extends StoredState>(state: State, size: number): State {
  if (byteLength(state) === size) return state;
  throw new CairnError("unavailable", "A stored checkpoint is damaged: its length is not the one recorded. Resume from an earlier one.", {
    details: { kind: "damaged" },
  });
}

async function decompress(data: Uint8Array, inflate: Transform | undefined): Promise<Uint8Array> {
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
      : isBlank(value)
        ? "must not be blank: it has no visible character"
        : value.length > LIMITS.runKeyChars
          ? `must have at most ${LIMITS.runKeyChars} characters`
          : unstorable(value);
  if (problem) throw new CairnError("invalid_input", `${name}: ${problem}`, { details: { field: name } });
}
