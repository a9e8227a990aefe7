import { type EmbedderPipeline, embedderPipeline } from "../embedders/pipeline.ts";
import { type EmbedderEntry, embedderRegistry } from "../embedders/registry.ts";
import type { SharedEmbedder } from "../embedders/shared/shared-embedder.ts";
import type { EmbeddingFigures, SharingFigures } from "../model/embedding-figures.ts";
import { CairnError } from "../model/errors.ts";
import { once } from "../model/once.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { LeaderLease } from "../ports/leader-lease.ts";
import type { Redact } from "../text/redact.ts";

/** Which model turns text into vectors. The bundled ones are always there too, for vectors they made before. */
export interface EmbedderChoice {
  /** `auto` (default) takes the best local model that runs here; `none` offers keyword search only. */
  readonly kind?: "auto" | "minilm" | "static" | "onnx" | "openai" | "tei" | "none" | undefined;
  readonly model?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly dimensions?: number | undefined;
  /** Folder of a model of your own, for `onnx`: config.json, tokenizer.json and model.onnx. */
  readonly path?: string | undefined;
  /** The ONNX file in `path`; default model.onnx, else onnx/model.onnx. */
  readonly file?: string | undefined;
  /** How the vectors of the tokens become one, for `onnx`; default: as the folder's files say. */
  readonly pooling?: "mean" | "cls" | undefined;
  /** Text before each query, for `onnx`. */
  readonly queryPrefix?: string | undefined;
  /** Text before each record, for `onnx`. */
  readonly documentPrefix?: string | undefined;
  /** Tokens of a text that the model reads, for `onnx`; default: as the folder's files say, at most 512. */
  readonly maxTokens?: number | undefined;
}

export interface OpenedEmbedders {
  readonly embedders: Embedders;
  usage(): EmbeddingFigures;
  /** Returns what this process did for others, and others for it, all models together. */
  sharing(): SharingFigures;
  /** Returns why the files of the configured model cannot be used, or `undefined` if they can. */
  problem(): Promise<string | undefined>;
}

export interface OpenEmbeddersOptions {
  readonly choice?: EmbedderChoice | readonly Embedder[] | undefined;
  /** Applied to every text before any embedder sees it. */
  readonly redact: Redact;
  /** Shares the local models with other processes; absent: this process loads its own. */
  readonly share?: ShareOptions | undefined;
  readonly onNotice?: ((message: string) => void) | undefined;
}

export interface ShareOptions {
  /** Whether this process may embed for others. A command that ends soon only asks. */
  readonly mayLead: boolean;
  readonly leaseOf: (embedder: Embedder) => LeaderLease;
}

/** Opens the embedders of this process, each behind redaction, a cache, a cost meter and a concurrency limit. */
export function openEmbedders({ choice = {}, redact, share, onNotice = () => {} }: OpenEmbeddersOptions): OpenedEmbedders {
  const pipelines: EmbedderPipeline[] = [];
  const shared: SharedEmbedder[] = [];
  const withSharing = async <Local extends Embedder>(embedder: Local): Promise<Embedder> => {
    if (!share) return embedder;
    const { sharedEmbedder } = await import("../embedders/shared/shared-embedder.ts");
    const opened = sharedEmbedder(embedder, { lease: share.leaseOf(embedder), mayLead: share.mayLead });
    shared.push(opened);
    return opened;
  };
  const withPipeline = (embedder: Embedder): Embedder => {
    const pipeline = embedderPipeline(embedder, redact);
    pipelines.push(pipeline);
    return pipeline;
  };
  const sum = (figure: keyof EmbeddingFigures) => pipelines.reduce((total, { usage }) => total + usage()[figure], 0);
  const { entries, ...order } = isList(choice) ? ownEmbedders(choice) : bundled(choice, onNotice, withSharing);
  return {
    async problem() {
      const own = entries.find(({ name }) => name === "onnx" && !isList(choice));
      return own?.open().then(
        () => undefined,
        (error: Error) => error.message,
      );
    },
    embedders: embedderRegistry({
      ...order,
      entries: entries.map(({ open, ...entry }) => ({
        ...entry,
        async open() {
          const embedder = await open();
          return embedder && withPipeline(embedder);
        },
      })),
    }),
    sharing() {
      const figures = shared.map((embedder) => embedder.figures());
      const total = (figure: "sent" | "served" | "fallbacks") => figures.reduce((all, each) => all + each[figure], 0);
      return {
        leads: figures.some(({ leads }) => leads),
        sent: total("sent"),
        served: total("served"),
        fallbacks: total("fallbacks"),
      };
    },
    usage: () => ({
      cacheHits: sum("cacheHits"),
      cacheMisses: sum("cacheMisses"),
      texts: sum("texts"),
      tokens: sum("tokens"),
      dollars: sum("dollars"),
      savedTokens: sum("savedTokens"),
      savedDollars: sum("savedDollars"),
    }),
  };
}

interface Choice {
  readonly entries: readonly EmbedderEntry[];
  readonly preferred: (collection: CollectionName) => readonly string[];
  readonly best: (collection: CollectionName) => readonly string[];
}

function isList(choice: EmbedderChoice | readonly Embedder[]): choice is readonly Embedder[] {
  return Array.isArray(choice);
}

function ownEmbedders(embedders: readonly Embedder[]): Choice {
  const entries = embedders.map((embedder) => ({ name: embedder.model, open: async () => embedder }));
  const inOrder = () => entries.map(({ name }) => name);
  return { entries, preferred: inOrder, best: inOrder };
}

/** Modules are loaded when their embedder is first used: most calls need none of them. */
function bundled(
  { kind = "auto", path, ...choice }: EmbedderChoice,
  onNotice: (message: string) => void,
  withSharing: (embedder: Embedder) => Promise<Embedder>,
): Choice {
  const { model, baseUrl, apiKey, dimensions } = choice;
  // One model for all that use it.
  const minilm = once(async () => withSharing((await import("../embedders/local/minilm.ts")).minilmEmbedder()));
  const table = once(async () => withSharing((await import("../embedders/local/static.ts")).staticEmbedder()));
  const usable = async () => {
    // The model is needed next, so it is tried out where it will run. Only its failure needs a process that finds out the reason.
    if (await runs(minilm)) return true;
    const embedder = await (await import("../embedders/local/local.ts")).minilmIfPossible({ onNotice });
    await embedder?.close();
    return embedder !== undefined;
  };
  const entries: EmbedderEntry[] = [
    { name: "minilm", open: minilm, usable },
    { name: "static", open: table },
    {
      name: "paired",
      open: async () => (await import("../embedders/local/paired.ts")).pairedEmbedder(await minilm(), await table()),
      usable,
    },
  ];
  if (kind === "openai")
    entries.unshift({
      name: "openai",
      open: async () => (await import("../embedders/remote/openai.ts")).openAiEmbedder({ apiKey, baseUrl, model, dimensions }),
    });
  if (kind === "tei") {
    if (baseUrl === undefined)
      throw new CairnError("invalid_input", "embedder.base_url: say where the TEI server is, such as http://127.0.0.1:8080");
    entries.unshift({
      name: "tei",
      open: async () => (await import("../embedders/remote/tei.ts")).teiEmbedder({ baseUrl, apiKey, model, dimensions }),
    });
  }
  if (kind === "onnx") {
    if (path === undefined) throw new CairnError("invalid_input", "embedder.path: name the folder of the model's files");
    entries.unshift({
      name: "onnx",
      open: reportFirstFailure(async () => {
        const { onnxEmbedder } = await import("../embedders/local/onnx/onnx.ts");
        return withSharing(await onnxEmbedder({ ...choice, path }));
      }, onNotice),
    });
  }
  const chosen = (byItself: readonly string[]) => (kind === "none" ? [] : kind === "auto" ? byItself : [kind]);
  const prose = ["minilm", "static"];
  return {
    entries,
    // The small model embeds code first, so that a repository can be searched within seconds; code_reembed uses the larger one.
    preferred: (collection) => chosen(collection === "code" ? ["static"] : prose),
    best: (collection) => chosen(collection === "code" ? ["paired", "static"] : prose),
  };
}

async function runs(open: () => Promise<Embedder>): Promise<boolean> {
  return open()
    .then((embedder) => embedder.embed(["ready"], { purpose: "query" }))
    .then(
      () => true,
      () => false,
    );
}

/** Reports the first failure to open: saves and searches continue without vectors then. */
function reportFirstFailure(open: () => Promise<Embedder>, onNotice: (message: string) => void): () => Promise<Embedder> {
  let reported = false;
  return () =>
    open().catch((error: Error) => {
      if (!reported) onNotice(`The embedding model cannot be opened. Records are stored without vectors. Reason: ${error.message}`);
      reported = true;
      throw error;
    });
}
