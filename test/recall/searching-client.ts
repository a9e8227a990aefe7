import { expect } from "vitest";
import type { Cairn } from "../../src/index.ts";
import { checkpointText } from "../../src/model/stored-record.ts";
import type { Embedder } from "../../src/ports/embedder.ts";

export interface Reference {
  readonly embedder: Embedder;
  /** The right vector of each record, by id. */
  readonly vectors: Map<string, Float32Array>;
}

export interface SearchingClient {
  /** The models that answered, one entry for each change. */
  readonly models: string[];
  searches: number;
  saves: number;
  /** Waits for an answer to a question that was asked after this call; raises what went wrong before. */
  settled(): Promise<void>;
  /** Asks no more; raises what went wrong. */
  stop(): Promise<void>;
}

/**
 * Searches and saves without pause, and holds every answer against the exact ranking of the one model that the answer names:
 * a single score from another model, a record too few or a part that was missing ends it with a failure.
 */
export function searchingClient(cairn: Cairn, projectPath: string, references: readonly Reference[], words: () => string): SearchingClient {
  let going = true;
  const client: SearchingClient = {
    models: [],
    searches: 0,
    saves: 0,
    async settled() {
      const before = client.searches;
      while (client.searches < before + 2) await Promise.race([work, new Promise((resolve) => setTimeout(resolve, 5))]);
    },
    async stop() {
      going = false;
      await work;
    },
  };

  async function search(): Promise<void> {
    const query = words();
    const mode = client.searches % 3 === 0 ? "hybrid" : "semantic";
    const { hits, degraded, model } = await cairn.checkpoints.search({ projectPath, query, mode, topK: 10 });
    expect(degraded).toEqual([]);
    const reference = references.find(({ embedder }) => embedder.model === model);
    if (!reference) throw new Error(`The answer names the model ${model}`);
    const [asked] = await reference.embedder.embed([query], { purpose: "query" });
    const right = (id: string) => Math.min(1, Math.max(0, dot(asked!, reference.vectors.get(id)!)));
    for (const { record, score } of hits) expect(score, `${record.id} by ${model}`).toBeCloseTo(right(record.id), 3);
    expect(hits).toHaveLength(10);
    if (mode === "semantic") {
      const best = [...reference.vectors.keys()].map(right).sort((a, b) => b - a);
      for (const [rank, { score }] of hits.entries()) expect(score, `rank ${rank + 1} by ${model}`).toBeCloseTo(best[rank]!, 3);
    }
    if (client.models.at(-1) !== model) client.models.push(model!);
    client.searches++;
  }

  async function isComplete(): Promise<boolean> {
    const versions = await cairn.embeddings.list({ projectPath, collection: "checkpoints" });
    return versions.some(({ isCurrent, records, vectors }) => isCurrent && records === vectors);
  }

  async function save(): Promise<void> {
    const saved = await cairn.checkpoints.save({ projectPath, summary: `saved meanwhile ${words()}` });
    // Only one that was being saved at the very moment of a switch may lack its vector, and gets it soon.
    while (!saved.embedded && !(await isComplete())) await new Promise((resolve) => setTimeout(resolve, 50));
    for (const { embedder, vectors } of references) vectors.set(saved.id, (await embedder.embed([checkpointText(saved)]))[0]!);
    client.saves++;
  }

  const work = (async () => {
    while (going) {
      await search();
      if (client.searches % 10 === 0) await save();
    }
  })();
  work.catch(() => {}); // raised by settled and stop
  return client;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
