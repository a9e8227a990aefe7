import { randomUUID } from "node:crypto";
import type { Checkpoint } from "../../src/model/checkpoint.ts";
import { idempotencyKey } from "../../src/model/idempotency.ts";
import { sha256Hex } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";

export const AT = "2026-01-02T03:04:05.678Z";

/** A vector of length one. */
export function unitVector(seed: number, dimension = 8): Float32Array {
  const vector = Float32Array.from({ length: dimension }, (_, i) => Math.sin(seed * 12.9898 + i * 78.233));
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

export function checkpointOf(projectPath: string, n: number, more: Partial<Checkpoint> = {}): Checkpoint {
  return {
    id: `checkpoint-${n}`,
    projectPath,
    summary: `Checkpoint number ${n}: прогресс 進捗 🧭`,
    description: `We refactored parseConfig in step ${n}.\nTabs\tand "quotes" stay.`,
    context: { branch: "main", step: String(n) },
    tags: n % 3 === 0 ? [] : [`step-${n}`, "Прогресс", "a,b"],
    anchors: n % 2 === 0 ? [] : [{ kind: "file", value: "src/б.ts", hash: sha256Hex(`file ${n}`), generation: n }],
    supersededBy: n % 4 === 3 ? `checkpoint-${n - 1}` : "",
    tokenCount: 20 + n,
    createdAt: AT,
    updatedAt: AT,
    createdOrder: more.createdAt ?? AT,
    updatedOrder: more.updatedAt ?? AT,
    revision: 1,
    ...more,
  };
}

/** Stores something in every table of a project, through the stores that everybody uses. */
export async function fillProject(storage: Storage, projectPath: string, { records = 20 } = {}): Promise<void> {
  const project = await storage.create(projectPath);
  const space = (model: string) => ({ model, version: "1", dimension: 8 });
  const first = await project.checkpoints.embeddings.addVersion(space("model-a"));
  const second = await project.checkpoints.embeddings.addVersion(space("model-b"));
  for (let n = 0; n < records; n++) {
    const vectors = n % 5 === 4 ? [] : [{ versionId: first.versionId, vector: unitVector(n) }];
    const long = n % 5 === 3 ? { description: `Step ${n} has several parts. `.repeat(100) } : {};
    const once = n === 0 ? idempotencyKey("checkpoint_save", "first", AT) : undefined;
    await project.checkpoints.put(checkpointOf(projectPath, n, long), vectors, { once });
  }
  const missing = await project.checkpoints.embeddings.missing(first.versionId, 100);
  const parts = missing.filter(({ piece }) => piece > 0).map((part, index) => ({ ...part, vector: unitVector(200 + index) }));
  await project.checkpoints.embeddings.putVectors(first.versionId, parts);
  const [, one] = await project.checkpoints.embeddings.missing(second.versionId, 2);
  await project.checkpoints.embeddings.putVectors(second.versionId, [{ ...one!, vector: unitVector(99) }]);
  await project.checkpoints.put(checkpointOf(projectPath, records + 1));
  await project.checkpoints.purge([`checkpoint-${records + 1}`]); // its number must not be reused
  await project.checkpoints.put(checkpointOf(projectPath, records + 2), [{ versionId: first.versionId, vector: unitVector(98) }]);
  await project.checkpoints.delete([`checkpoint-${records + 2}`], AT);
  await project.checkpoints.embeddings.outbox?.enable();

  const known = await project.knowledge.embeddings.addVersion(space("model-k"));
  for (let n = 0; n < 6; n++)
    await project.knowledge.put(
      {
        id: `knowledge-${n}`,
        kind: n % 2 === 0 ? "remediation" : "faq",
        category: "build",
        subcategory: "ci",
        question: `Why does step ${n} fail with ENOENT?`,
        answer: "Because the folder is missing. Создайте её.",
        contentHash: sha256Hex(`knowledge ${n}`),
        successes: n,
        uses: n + 1,
        outdated: n % 3,
        anchors: [{ kind: "symbol", value: "work0", path: "src/a.ts", hash: sha256Hex(`symbol ${n}`), lines: n + 1 }],
        supersededBy: n === 5 ? "knowledge-4" : "",
        source: "test",
        createdAt: AT,
        updatedAt: AT,
        createdOrder: AT,
        revision: 1,
      },
      [{ versionId: known.versionId, vector: unitVector(n + 40) }],
    );

  const code = await project.code.embeddings.addVersion(space("model-c"));
  await project.code.commit({
    at: AT,
    files: ["src/a.ts", "src/б.ts"].map((path, file) => ({
      path,
      contentHash: sha256Hex(path),
      language: "typescript",
      bytes: 120,
      lines: 9,
      chunks: [0, 1].map((index) => ({
        chunk: {
          index,
          kind: "function",
          name: `work${index}`,
          parents: ["Outer"],
          defines: [`work${index}`],
          startLine: 1 + index,
          endLine: 4 + index,
          text: `export function work${index}() { return ${randomUUID().length}; }`,
        },
        vectors: [{ versionId: code.versionId, vector: unitVector(70 + 2 * file + index) }],
      })),
      symbols: [
        { name: "work0", kind: "function", role: "definition", line: 1, column: 17, endLine: 1, parents: [] },
        { name: "work1", kind: "function", role: "definition", line: 2, column: 17, endLine: 2, parents: ["Outer"] },
        { name: "parseConfig", kind: "function", role: "reference", line: 3, column: 2, parents: [] },
      ],
    })),
  });
  await project.code.commit({ at: AT, renames: [{ from: "src/a.ts", to: "src/c.ts", contentHash: sha256Hex("src/a.ts") }] });
}
