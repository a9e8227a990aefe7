import { expect } from "vitest";
import { type OpenOptions, open } from "../../src/open/open.ts";

export const MANY = 100_000;
/** Which of the many have the tag that is asked for. */
export const RARE: ReadonlySet<number> = new Set([17, 50_000, 99_999]);
/** When the record of this number was created. */
export const createdAt = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 1_000).toISOString();

/** The project holds MANY records named `id-<number>`, all of them about a step, tagged `common` and some `rare`. */
export async function findsTheRare(options: OpenOptions, projectPath: string): Promise<void> {
  const cairn = await open(options);
  try {
    const found = async (mode: "semantic" | "keyword" | "hybrid", filter: object) => {
      const { hits, degraded } = await cairn.checkpoints.search({ projectPath, query: "step", topK: 10, mode, ...filter });
      expect(degraded).toEqual([]);
      return hits.map(({ record }) => record.id).sort();
    };
    const expected = [...RARE].map((number) => `id-${number}`).sort();
    for (const mode of ["semantic", "keyword", "hybrid"] as const) {
      expect(await found(mode, { tags: ["rare"] }), mode).toEqual(expected);
      expect(await found(mode, { tags: ["RAR", "comm"], tagMatch: "substring" }), mode).toEqual(expected);
    }
    expect(await found("semantic", { createdFrom: createdAt(MANY - 2) })).toEqual([`id-${MANY - 2}`, `id-${MANY - 1}`]);
    expect((await cairn.checkpoints.list({ projectPath, tags: ["rare"] })).total).toBe(RARE.size);
    expect((await cairn.checkpoints.list({ projectPath })).total).toBe(MANY);
  } finally {
    await cairn.close();
  }
}

/** Two write and delete while a third lists: the total equals the number of rows. */
export async function countsExactly(options: OpenOptions): Promise<void> {
  const projectPath = "/busy";
  const writers = await Promise.all([1, 2].map(() => open({ ...options, embedder: { kind: "none" } })));
  const reader = await open({ ...options, embedder: { kind: "none" } });
  let writing = true;
  const write = async (cairn: (typeof writers)[number]) => {
    for (let round = 0; round < 40; round++) {
      const { id } = await cairn.checkpoints.save({ projectPath, summary: `round ${round}`, tags: ["t"] });
      if (round % 3 === 0) await cairn.checkpoints.delete({ projectPath, id });
    }
  };
  const done = Promise.all(writers.map(write)).finally(() => {
    writing = false;
  });
  let looks = 0;
  while (writing) {
    const { checkpoints, total } = await reader.checkpoints.list({ projectPath, limit: 100, tags: ["t"] });
    expect(checkpoints.length).toBe(total);
    looks++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  expect(looks).toBeGreaterThan(0);
  expect((await reader.checkpoints.list({ projectPath })).total).toBe(2 * (40 - 14));
  for (const cairn of [...writers, reader]) await cairn.close();
}
