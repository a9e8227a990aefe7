import { setImmediate as nextTurn } from "node:timers/promises";
import { builtFile } from "../../files/built-file.ts";
import { CairnError } from "../../model/errors.ts";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import { yieldToCalls } from "../../scheduling/calls.ts";
import { loadTable, type StaticTable } from "./static-table.ts";

export interface StaticOptions {
  /** Folder of static.json and static.bin; default: the files of the build. */
  readonly modelDir?: string;
  /** Folder of tokenizer.json; default: that of MiniLM, from the build. */
  readonly tokenizerFile?: string;
  /** Milliseconds that an idle table stays in memory; default five minutes. */
  readonly idleMs?: number;
}

/** Tokens of a text that are read. */
export const STATIC_TOKENS = 512;
// Characters per token, on the high side; the rest of a huge text is not read.
const TEXT_CHARS = 16_000;
// Texts per turn of the event loop: a few milliseconds of work.
const SLICE_TEXTS = 16;
const IDLE_MS = 5 * 60_000;
const MODEL = "cairn-static";
const VERSION = "1";
const DIMENSION = 256;

/** Opens a table of token vectors distilled from MiniLM: thousands of texts per second, less accurate. */
export function staticEmbedder({
  modelDir = builtFile("models/static"),
  tokenizerFile = builtFile("models/minilm/tokenizer.json"),
  idleMs = IDLE_MS,
}: StaticOptions = {}): Embedder {
  let table: Promise<StaticTable> | undefined;
  let closed = false;
  let idle: NodeJS.Timeout | undefined;
  const use = (): Promise<StaticTable> => {
    table ??= loadTable(modelDir, tokenizerFile, DIMENSION, STATIC_TOKENS);
    idle ??= setTimeout(() => {
      table = undefined;
    }, idleMs).unref();
    idle.refresh();
    return table;
  };
  return {
    model: MODEL,
    version: VERSION,
    dimension: DIMENSION,
    textChars: TEXT_CHARS,
    async embed(texts, { signal }: EmbedOptions = {}) {
      if (closed) throw new CairnError("unavailable", "The static embedder is closed.");
      signal?.throwIfAborted();
      const loaded = await use().catch((error: unknown) => {
        table = undefined; // the next call reads the files again
        throw new CairnError("unavailable", "The static embedding table cannot be read. Run the build again.", { cause: error });
      });
      const vectors: Float32Array[] = [];
      for (const text of texts) {
        if (vectors.length % SLICE_TEXTS === SLICE_TEXTS - 1) {
          await nextTurn();
          signal?.throwIfAborted();
        }
        yieldToCalls();
        vectors.push(loaded.vectorOf(loaded.tokenizer.pieces(splitIdentifiers(text.slice(0, TEXT_CHARS)), STATIC_TOKENS)));
      }
      return vectors;
    },
    async coverage(text) {
      return (await use()).tokenizer.coverage(splitIdentifiers(text));
    },
    threadModel: { module: "embedders/local/static.js", create: "staticEmbedder", options: { modelDir, tokenizerFile } },
    async close() {
      closed = true;
      table = undefined;
      clearTimeout(idle);
    },
  };
}

/** Splits identifiers into words: parseJSONFile becomes parse JSON File. */
export function splitIdentifiers(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
}
