import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { open } from "../src/index.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { type Bench, type Benchmark, median, root } from "./frame.ts";

const TEMPLATES = 201;
const ROUNDS = 5;

interface Started {
  readonly readyMs: number;
  readonly searchedMs: number;
  readonly embeddingCalls: number;
}

/** Measures the time from process start until 201 imported templates can be searched: with stored vectors, and with vectors to compute. */
export default {
  summary: `process start with ${TEMPLATES} templates, with and without stored vectors`,
  async run(bench) {
    const local = minilmEmbedder();
    const { model, version, dimension } = local;
    const down: Embedder = { model, version, dimension, embed: () => Promise.reject(new Error("down")), close: async () => {} };
    const withVectors = await imported(bench, local);
    await local.close();

    const started: Started[] = [];
    const without: Started[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      started.push(await start(withVectors));
      // A new folder each time, because the first start computes missing vectors.
      if (round < 2) without.push(await start(await imported(bench, down)));
    }
    const samples = started.map(({ readyMs }) => readyMs);
    bench.record({ name: "start_ms", value: median(samples), unit: "ms", samples, against: "start_without_vectors_ms" });
    const slow = without.map(({ readyMs }) => readyMs);
    bench.record({ name: "start_without_vectors_ms", value: median(slow), unit: "ms", samples: slow });
    bench.record({ name: "embedding_calls", value: Math.max(...started.map(({ embeddingCalls }) => embeddingCalls)), unit: "texts" });
    const calls = Math.max(...without.map(({ embeddingCalls }) => embeddingCalls));
    bench.record({ name: "embedding_calls_without_vectors", value: calls, unit: "texts" });
    const searched = started.map(({ searchedMs }) => searchedMs);
    bench.record({ name: "first_search_ms", value: median(searched), unit: "ms", samples: searched });
  },
} satisfies Benchmark;

async function imported(bench: Bench, embedder: Embedder): Promise<string> {
  const dataDir = bench.scratch();
  const cairn = await open({ dataDir, embedder: [embedder] });
  const records = Array.from({ length: TEMPLATES }, (_, index) => ({
    id: `tmpl_${index + 1}`,
    kind: "faq" as const,
    category: `Category ${index % 12}`,
    subcategory: `Part ${index % 5}`,
    question: `How do I ${["open", "close", "renew", "block", "insure"][index % 5]} account type ${index} at branch ${index % 17}?`,
    answer: `Bring your passport to counter ${index % 9} and ask for form ${index}.`,
  }));
  await cairn.knowledge.import({ scope: "shared", source: "bench", records });
  await cairn.close();
  return dataDir;
}

async function start(dataDir: string): Promise<Started> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "bench", "startup", "start.mjs"), root, dataDir]);
  return JSON.parse(stdout);
}
