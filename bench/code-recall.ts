import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { pairedEmbedder } from "../src/embedders/local/paired.ts";
import { staticEmbedder } from "../src/embedders/local/static.ts";
import { type Cairn, open } from "../src/index.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { bm25OverFiles, type FileRanking, ripgrepByLines } from "./code-recall/baselines.ts";
import { type Question, questionSets } from "./code-recall/question-set.ts";
import { mean, type Scores, scoreFiles, scorePlaces } from "./code-recall/score.ts";
import { readTree, type Source, treeOf } from "./code-recall/sources.ts";
import { type Bench, type Benchmark, quantile } from "./frame.ts";

const BATCH_FILES = 10;

/** The scores of one question on one system. */
interface Scored extends Scores {
  readonly system: string;
  readonly set: string;
  readonly question: Question;
  /** nDCG of the line ranges; absent when the system returns files only. */
  readonly places?: number;
}

/** Scores code search on questions about real repositories. `ndcg10` ranks files with the model of a first index, `reembedded_…` with the model of `code_reembed`. */
export default {
  summary: "questions about three repositories, compared with BM25 over files and ripgrep (--static omits the re-embedded index)",
  flags: ["--static"],
  async run(bench) {
    const scored: Scored[] = [];
    const took: number[] = [];
    for (const set of questionSets()) {
      const tree = await treeOf(set);
      const sources = await readTree(tree);
      bench.log(`${set.name}: ${sources.length} files, ${set.questions.length} questions`);
      const baselines = { bm25: await bm25OverFiles(bench, sources), ripgrep: await ripgrepByLines(bench, tree) };
      for (const [system, ranking] of Object.entries(baselines)) scored.push(...(await scoreBaseline(system, ranking, set)));
      scored.push(...(await scoreCairn(bench, "static", staticEmbedder(), set, sources, took)));
      if (!bench.hasFlag("--static")) {
        const reembedded = pairedEmbedder(minilmEmbedder(), staticEmbedder());
        scored.push(...(await scoreCairn(bench, "reembedded", reembedded, set, sources, [])));
      }
    }
    report(bench, scored);
    bench.record({ name: "query_p50_ms", value: quantile(took, 0.5), unit: "ms", samples: took });
  },
} satisfies Benchmark;

interface Questions {
  readonly name: string;
  readonly questions: readonly Question[];
}

async function scoreBaseline(system: string, ranking: FileRanking, { name, questions }: Questions): Promise<Scored[]> {
  const scored: Scored[] = [];
  for (const question of questions) scored.push({ system, set: name, question, ...scoreFiles(question, await ranking(question.ask)) });
  return scored;
}

/** Searches through the library with default options and ten hits. */
async function scoreCairn(
  bench: Bench,
  system: string,
  embedder: Embedder,
  { name, questions }: Questions,
  sources: readonly Source[],
  took: number[],
): Promise<Scored[]> {
  const cairn = await open({ dataDir: bench.scratch(), embedder: [embedder] });
  const projectPath = `/bench/${name}`;
  try {
    await index(cairn, projectPath, sources);
    const scored: Scored[] = [];
    for (const question of questions) {
      const start = performance.now();
      const { hits } = await cairn.code.search({ projectPath, query: question.ask, topK: 10 });
      took.push(performance.now() - start);
      const files = scoreFiles(
        question,
        hits.map(({ path }) => path),
      );
      scored.push({ system, set: name, question, ...files, places: scorePlaces(question, hits) });
    }
    return scored;
  } finally {
    await cairn.close();
  }
}

async function index(cairn: Cairn, projectPath: string, sources: readonly Source[]): Promise<void> {
  for (let start = 0; start < sources.length; start += BATCH_FILES) {
    const files = sources.slice(start, start + BATCH_FILES).map(({ path, content }) => ({ path, content }));
    const { notEmbedded } = await cairn.code.indexBatch({ projectPath, files });
    if (notEmbedded !== undefined) throw new Error(`Not everything could be embedded: ${notEmbedded}.`);
  }
}

/** The static model's metrics have no prefix: that model serves an index first. */
function report(bench: Bench, scored: readonly Scored[]): void {
  const systems = [...new Set(scored.map(({ system }) => system))];
  const figure = (system: string, what: string, chosen: (one: Scored) => boolean, value: (one: Scored) => number) => {
    const samples = scored.filter((one) => one.system === system && chosen(one)).map(value);
    const prefix = system === "static" ? "" : `${system}_`;
    const peer = system === "bm25" || system === "ripgrep" ? {} : { against: `bm25_${what}` };
    if (samples.length > 0) bench.record({ name: `${prefix}${what}`, value: mean(samples), unit: "", ...peer });
  };
  const ndcg = ({ ndcg10 }: Scored) => ndcg10;
  for (const system of systems) {
    figure(system, "ndcg10", () => true, ndcg);
    figure(
      system,
      "mrr",
      () => true,
      ({ mrr }) => mrr,
    );
    figure(
      system,
      "top1",
      () => true,
      ({ top1 }) => top1,
    );
    for (const part of ["tuning", "held_out"] as const) figure(system, `ndcg10_${part}`, ({ question }) => question.part === part, ndcg);
    for (const set of new Set(scored.map((one) => one.set))) figure(system, `ndcg10_${set}`, (one) => one.set === set, ndcg);
    for (const kind of ["behaviour", "symbol", "error"] as const)
      figure(system, `ndcg10_${kind}`, ({ question }) => question.kind === kind, ndcg);
    const places = scored.filter((one) => one.system === system && one.places !== undefined).map((one) => one.places!);
    if (places.length > 0) bench.record({ name: `${system === "static" ? "" : `${system}_`}places_ndcg10`, value: mean(places), unit: "" });
  }
}
