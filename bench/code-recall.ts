import { join } from "node:path";
import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { pairedEmbedder } from "../src/embedders/local/paired.ts";
import { staticEmbedder } from "../src/embedders/local/static.ts";
import { type Cairn, open } from "../src/index.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { bm25OverFiles, type FileRanking, ripgrepByLines } from "./code-recall/baselines.ts";
import { historyQuestions, type Question, type QuestionSet, questionSets } from "./code-recall/question-set.ts";
import { mean, type Scores, scoreFiles, scorePlaces } from "./code-recall/score.ts";
import { canDownload, readTree, type Source, treeOf } from "./code-recall/sources.ts";
import { type Bench, type Benchmark, quantile, root } from "./frame.ts";

const BATCH_FILES = 10;

/** The scores of one question on one system. */
interface Scored extends Scores {
  readonly system: string;
  readonly set: Questions;
  readonly question: Question;
  /** nDCG of the line ranges; absent when the system returns files only. */
  readonly places?: number;
}

/** Scores code search on questions about real repositories. `ndcg10` ranks files with the model of a first index, `reembedded_…` with the model of `code_reembed`. */
export default {
  summary: "questions about nine repositories, compared with BM25 over files and ripgrep (--static omits the re-embedded index)",
  flags: ["--static"],
  async run(bench) {
    const scored: Scored[] = [];
    const took: number[] = [];
    for (const set of questionSets()) {
      if (!canDownload(set)) {
        bench.log(`${set.name}: omitted, because cargo is not installed`);
        continue;
      }
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
    const history = historyQuestions("src");
    if (history.questions.length > 0) {
      bench.log(`history of this checkout: ${history.questions.length} questions`);
      scored.push(...(await scoreCairn(bench, "static", staticEmbedder(), history, await readTree(join(root, "src")), [])));
    }
    report(bench, scored);
    bench.record({ name: "query_p50_ms", value: quantile(took, 0.5), unit: "ms", samples: took });
  },
} satisfies Benchmark;

type Questions = Pick<QuestionSet, "name" | "language" | "group" | "questions">;

async function scoreBaseline(system: string, ranking: FileRanking, set: Questions): Promise<Scored[]> {
  const scored: Scored[] = [];
  for (const question of set.questions) scored.push({ system, set, question, ...scoreFiles(question, await ranking(question.ask)) });
  return scored;
}

/** Searches through the library with default options and ten hits. */
async function scoreCairn(
  bench: Bench,
  system: string,
  embedder: Embedder,
  set: Questions,
  sources: readonly Source[],
  took: number[],
): Promise<Scored[]> {
  const cairn = await open({ dataDir: bench.scratch(), embedder: [embedder] });
  const projectPath = `/bench/${set.name}`;
  try {
    await index(cairn, projectPath, sources);
    const scored: Scored[] = [];
    for (const question of set.questions) {
      const start = performance.now();
      const { hits } = await cairn.code.search({ projectPath, query: question.ask, topK: 10 });
      took.push(performance.now() - start);
      const files = scoreFiles(
        question,
        hits.map(({ path }) => path),
      );
      scored.push({ system, set, question, ...files, places: scorePlaces(question, hits) });
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

/**
 * Reports each system and group of sets. The static model's metrics have no prefix: that model serves an index first. Neither have the
 * metrics of the first three repositories.
 */
function report(bench: Bench, scored: readonly Scored[]): void {
  for (const system of new Set(scored.map((one) => one.system)))
    for (const group of new Set(scored.map(({ set }) => set.group))) {
      const prefix = (system === "static" ? "" : `${system}_`) + (group ? `${group}_` : "");
      const peer = system === "bm25" || system === "ripgrep" ? undefined : `bm25_${group ? `${group}_` : ""}`;
      reportGroup(
        bench,
        { prefix, peer },
        scored.filter((one) => one.system === system && one.set.group === group),
      );
    }
}

function reportGroup(
  bench: Bench,
  { prefix, peer }: { readonly prefix: string; readonly peer: string | undefined },
  scored: readonly Scored[],
): void {
  const figure = (what: string, chosen: readonly Scored[], value: (one: Scored) => number = ({ ndcg10 }) => ndcg10) => {
    if (chosen.length === 0) return;
    const against = peer && what !== "places_ndcg10" ? { against: `${peer}${what}` } : {};
    bench.record({ name: `${prefix}${what}`, value: mean(chosen.map(value)), unit: "", ...against });
  };
  const byValue = (name: string, of: (one: Scored) => string) => {
    for (const value of new Set(scored.map(of)))
      figure(
        `${name}_${value}`,
        scored.filter((one) => of(one) === value),
      );
  };
  figure("ndcg10", scored);
  figure("mrr", scored, ({ mrr }) => mrr);
  figure("top1", scored, ({ top1 }) => top1);
  byValue("ndcg10", ({ question }) => question.part);
  byValue("ndcg10", ({ set }) => set.name);
  byValue("ndcg10", ({ set }) => set.language);
  byValue("ndcg10", ({ question }) => question.kind);
  const withPlaces = scored.filter(({ places }) => places !== undefined);
  figure("places_ndcg10", withPlaces, ({ places }) => places!);
}
