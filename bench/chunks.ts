import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { readSource } from "../src/client/files/read-source.ts";
import { resolveRoot } from "../src/client/files/root.ts";
import { type WalkedFile, walk } from "../src/client/files/walk.ts";
import { chunkFile } from "../src/code/chunking/chunk-file.ts";
import { parserPool } from "../src/code/parser-pool.ts";
import { type Benchmark, quantile, root } from "./frame.ts";

const FILES = 2_500;
/** Files that are chunked concurrently: a batch of the index is ten files. */
const AT_ONCE = 10;

/** Measures walking, reading and chunking a tree, without embedding or storing: the files of this project's node_modules. */
export default {
  summary: "walking, reading and chunking files of node_modules",
  async run(bench) {
    const tree = await resolveRoot(join(root, "node_modules"));
    const started = performance.now();
    const all: WalkedFile[] = [];
    for await (const entry of walk(tree, { ignoreRules: false })) if (entry.type === "file") all.push(entry);
    bench.record({ name: "walk_files_per_s", value: (all.length / (performance.now() - started)) * 1_000, unit: "files/s" });

    // Takes every n-th file, so that all packages and sizes are represented.
    const files = all.filter((_, index) => index % Math.ceil(all.length / FILES) === 0);
    const sources = (await Promise.all(files.map(({ path }) => readSource(tree, path)))).filter((source) => source.type === "source");
    const mb = sources.reduce((sum, { stat }) => sum + stat.sizeBytes, 0) / 1e6;
    bench.record({ name: "files", value: sources.length, unit: "files" });
    bench.record({ name: "mb", value: mb, unit: "MB" });

    const byLines = secondsOf(() => {
      for (const { path, content } of sources) chunkFile({ path, content, language: "text" });
    });

    const pool = parserPool();
    bench.defer(() => pool.close());
    await pool.derive({ path: "warm-up.ts", content: "export {};" });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    const times: number[] = [];
    let chunks = 0;
    let names = 0;
    let fallbacks = 0;
    let peakRss = 0;
    const queue = sources.values();
    const worker = async (): Promise<void> => {
      for (const { path, content } of queue) {
        const start = performance.now();
        const file = await pool.derive({ path, content });
        times.push(performance.now() - start);
        chunks += file.packed.outlines.length;
        names += file.packed.symbols.figures.length / 3;
        if (file.notice) fallbacks++;
        peakRss = Math.max(peakRss, process.memoryUsage.rss());
      }
    };
    delay.enable();
    const start = performance.now();
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const seconds = (performance.now() - start) / 1_000;
    delay.disable();

    bench.record({ name: "files_per_s", value: sources.length / seconds, unit: "files/s" });
    bench.record({ name: "lines_mb_per_s", value: mb / byLines, unit: "MB/s" });
    bench.record({ name: "mb_per_s", value: mb / seconds, unit: "MB/s", against: "lines_mb_per_s" });
    bench.record({ name: "file_p99_ms", value: quantile(times, 0.99), unit: "ms" });
    bench.record({ name: "main_thread_delay_p99_ms", value: delay.percentile(99) / 1e6, unit: "ms" });
    bench.record({ name: "chunks_per_file", value: chunks / sources.length, unit: "chunks" });
    bench.record({ name: "names_per_chunk", value: names / chunks, unit: "names" });
    bench.record({ name: "fallbacks", value: fallbacks, unit: "files" });
    bench.record({ name: "peak_rss_mb", value: peakRss / 1e6, unit: "MB" });
  },
} satisfies Benchmark;

function secondsOf(work: () => void): number {
  const start = performance.now();
  work();
  return (performance.now() - start) / 1_000;
}
