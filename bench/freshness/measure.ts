import { realpathSync } from "node:fs";
import { join } from "node:path";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { checkTree } from "../../src/client/freshness/check-tree.ts";
import { gitFacts } from "../../src/client/freshness/git-facts.ts";
import { gitHistory } from "../../src/client/freshness/git-history.ts";
import { treeFiles } from "../../src/client/freshness/tree-files.ts";
import { open } from "../../src/open/open.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { functionsOf, oracle, type Quote, readFiles, runGit, type Verdict } from "./oracle.ts";

export interface Measured {
  readonly records: number;
  /** Records that the oracle calls changed, gone or renamed. */
  readonly stale: number;
  readonly precision: number;
  readonly recall: number;
  /** Stale records among the first five hits of a search that were not marked. */
  readonly unmarked: number;
  /** Milliseconds of each answer with anchored records, and of the same answer with records without anchors. */
  readonly anchoredMs: readonly number[];
  readonly plainMs: readonly number[];
  /** Milliseconds of processor time that anchors add to an answer. It does not depend on other load. */
  readonly cpuMs: number;
  /** Milliseconds of the marks of one answer in a new process: the first one at this head, and a later one. */
  readonly coldMs: readonly number[];
  readonly warmMs: readonly number[];
  readonly mistakes: readonly string[];
}

export interface MeasureOptions {
  /** A clone that this function may change. */
  readonly clone: string;
  readonly from: string;
  readonly to: string;
  readonly records: number;
  readonly searches: number;
  readonly dataDir: string;
  /** Milliseconds that an answer may take; default that of a session. */
  readonly limitMs?: number | undefined;
}

const FILES = 2_000;
const COMMANDS = 20;
const BATCH_BYTES = 1_000_000;
const STALE: ReadonlySet<string> = new Set(["changed", "gone", "renamed"]);

/** Saves records that quote code at one commit, checks out another, and compares their marks with an oracle. */
export async function measureFreshness({ from, to, records, searches, dataDir, limitMs, ...where }: MeasureOptions): Promise<Measured> {
  const clone = realpathSync(where.clone);
  runGit(clone, "checkout", "-q", "-B", "cairn-bench", from);
  const cairn = await open({ dataDir, embedder: [lengthEmbedder] });
  const operations = decorateOperations(served, { freshness: limitMs === undefined ? {} : { limitMs } });
  const call = (name: string, input: Record<string, unknown>) =>
    invoke(cairn, operations.find((one) => one.name === name)!, { project_path: clone, ...input }, { caller: LOCAL_CALLER });
  try {
    const quotes = chooseQuotes(readFiles(clone, from, FILES), records);
    await indexFiles(new Map(quotes.map(({ path, content }) => [path, content])));
    const ids: string[] = [];
    for (const [number, { path, symbol }] of quotes.entries()) {
      const summary = symbol === undefined ? `Note ${number}: see ${path} for details` : `Note ${number}: ${symbol} is what matters`;
      const anchors = symbol === undefined ? {} : { anchors: [`${path}#${symbol}`] };
      ids.push((await call("checkpoint_save", { summary, ...anchors })).id as string);
      await cairn.checkpoints.save({ projectPath: PLAIN, summary, anchors: [] });
    }
    const judge = oracle(clone, from, to);
    runGit(clone, "reset", "-q", "--hard", to);
    const expected = new Map(ids.map((id, index) => [id, judge(quotes[index]!)]));
    await warmUp(ids[0]!);

    const mistakes: string[] = [];
    const counts = { right: 0, marked: 0, stale: 0 };
    for (const [index, id] of ids.entries()) {
      const { freshness } = (await call("checkpoint_get", { id })) as { freshness: { state: string } };
      const verdict = expected.get(id)!;
      if (STALE.has(freshness.state)) counts.marked++;
      if (STALE.has(verdict)) counts.stale++;
      if (STALE.has(verdict) && freshness.state === verdict) counts.right++;
      if (freshness.state !== verdict)
        mistakes.push(`${quotes[index]!.path} ${quotes[index]!.symbol ?? ""}: ${freshness.state}, not ${verdict}`);
    }
    const searched = await search(expected);
    // Only records whose files are missing need git.
    const moved = ids.filter((id) => ["gone", "renamed"].includes(expected.get(id)!));
    const commands = await timeCommands(moved.length > 0 ? moved : ids);
    const { right, marked, stale } = counts;
    return { records: ids.length, stale, precision: right / marked, recall: right / stale, ...searched, ...commands, mistakes };
  } finally {
    await cairn.close();
  }

  async function indexFiles(files: ReadonlyMap<string, string>): Promise<void> {
    let batch: { path: string; content: string }[] = [];
    const flush = async () => {
      if (batch.length > 0) await cairn.code.indexBatch({ projectPath: clone, files: batch });
      batch = [];
    };
    for (const [path, content] of files) {
      batch.push({ path, content });
      if (batch.length >= 100 || batch.reduce((sum, one) => sum + one.content.length, 0) > BATCH_BYTES) await flush();
    }
    await flush();
  }

  /** Waits for the first comparison of the two commits, as a session does between two answers. */
  async function warmUp(id: string): Promise<void> {
    const unhurried = decorateOperations(served, { freshness: { limitMs: 60_000 } }).find(({ name }) => name === "checkpoint_list")!;
    await invoke(cairn, unhurried, { project_path: clone, limit: 100 }, { caller: LOCAL_CALLER });
    await call("checkpoint_get", { id });
  }

  /** Times the marks of five hits as a new process computes them, without and with the answers of git that another process left. */
  async function timeCommands(ids: readonly string[]): Promise<Pick<Measured, "coldMs" | "warmMs">> {
    const coldMs: number[] = [];
    const warmMs: number[] = [];
    for (let round = 0; round < COMMANDS; round++) {
      const folder = join(dataDir, "git", String(round));
      const hits = Array.from({ length: 5 }, (_, index) => ids[(round * 211 + index * 97) % ids.length]!);
      const found = await Promise.all(hits.map((id) => cairn.checkpoints.get({ projectPath: clone, id })));
      for (const times of [coldMs, warmMs]) {
        const deps = { readFile: treeFiles(), history: gitHistory(gitFacts(folder)), limitMs: 60_000 };
        const start = performance.now();
        await checkTree(deps, clone, found);
        times.push(performance.now() - start);
      }
    }
    return { coldMs, warmMs };
  }

  async function search(expected: ReadonlyMap<string, Verdict>): Promise<Pick<Measured, "unmarked" | "anchoredMs" | "plainMs" | "cpuMs">> {
    let unmarked = 0;
    let cpuMs = 0;
    const anchoredMs: number[] = [];
    const plainMs: number[] = [];
    for (let round = 0; round < searches; round++) {
      const query = `Note ${(round * 37) % expected.size} details`;
      const [cpuStart, start] = [cpuNow(), performance.now()];
      const { results } = await call("checkpoint_search", { query, top_k: 5 });
      const [cpuMiddle, middle] = [cpuNow(), performance.now()];
      await call("checkpoint_search", { query, top_k: 5, project_path: PLAIN });
      cpuMs += cpuMiddle - cpuStart - (cpuNow() - cpuMiddle);
      plainMs.push(performance.now() - middle);
      anchoredMs.push(middle - start);
      for (const { checkpoint } of results as { checkpoint: { id: string; freshness: { state: string } } }[])
        if (STALE.has(expected.get(checkpoint.id)!) && !STALE.has(checkpoint.freshness.state)) unmarked++;
    }
    return { unmarked, anchoredMs, plainMs, cpuMs: cpuMs / searches };
  }
}

function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** A project without a folder: its records have no anchors. */
const PLAIN = "/cairn-bench/plain";

/** Every second record quotes a symbol, in files that are spread over the whole repository. */
function chooseQuotes(files: ReadonlyMap<string, string>, count: number): (Quote & { readonly content: string })[] {
  const entries = [...files];
  const symbols = entries.flatMap(([path, content]) => functionsOf(content).map((one) => ({ path, content, ...one })));
  const pick = <T>(from: readonly T[], index: number): T => from[(index * 7_919) % from.length]!;
  return Array.from({ length: count }, (_, index) => {
    if (index % 2 === 1 && symbols.length > 0) return pick(symbols, index);
    const [path, content] = pick(entries, index);
    return { path, content };
  });
}

/** No model is part of what is measured. */
const lengthEmbedder: Embedder = {
  model: "length",
  version: "1",
  dimension: 4,
  embed: async (texts) =>
    texts.map((text) => Float32Array.of(1, text.length % 7, text.length % 3, 1).map((value, _, all) => value / Math.hypot(...all))),
  close: async () => {},
};
