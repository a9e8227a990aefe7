import { afterAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/anchored/project";
const source = "import x from 'x';\n\nexport function parse(text) {\n  return text.split(' ');\n}\n\nexport const other = 1;\n";

describe("anchors of saved records", () => {
  const opened = open({ storage: "memory", embedder: [testEmbedder()], freshness: { limitMs: 60_000 } });
  afterAll(async () => (await opened).close());

  it("anchors files and symbols to the code index", async () => {
    const cairn = await opened;
    await cairn.code.indexBatch({ projectPath, files: [{ path: "src/a.js", content: source }] });
    const saved = await cairn.checkpoints.save({ projectPath, summary: "Rewrote parse() in src/a.js, not src/b.js" });
    const definition = "export function parse(text) {\n  return text.split(' ');\n}";
    expect(saved.anchors).toEqual([
      { kind: "file", value: "src/a.js", hash: sha256Hex(source), generation: 1 },
      {
        ...{ kind: "symbol", value: "parse", path: "src/a.js", hash: sha256Hex(definition), content: sha256Hex(source) },
        ...{ lines: 3, generation: 1 },
      },
    ]);
    expect((await cairn.checkpoints.get({ projectPath, id: saved.id })).anchors).toEqual(saved.anchors);
  });

  it("keeps given anchors, also missing ones, and recognises none then", async () => {
    const cairn = await opened;
    const input = { projectPath, question: "Where is parse()?", answer: "In src/a.js." };
    const saved = await cairn.knowledge.save({ ...input, anchors: ["src/gone.js", "src/a.js#other", "branch:main"] });
    expect(saved.anchors).toMatchObject([
      { kind: "file", value: "src/gone.js" },
      { kind: "symbol", value: "other", path: "src/a.js", lines: 1 },
      { kind: "branch", value: "main" },
    ]);
    expect((await cairn.knowledge.save({ ...input, anchors: [] })).anchors).toEqual([]);
  });

  it("anchors again when a record is updated", async () => {
    const cairn = await opened;
    const { id } = await cairn.checkpoints.save({ projectPath, summary: "Nothing in particular" });
    const updated = await cairn.checkpoints.update({ projectPath, id, description: "It concerns src/a.js." });
    expect(updated.anchors).toMatchObject([{ kind: "file", value: "src/a.js" }]);
  });

  it("removes secrets from given anchors", async () => {
    const cairn = await opened;
    const secret = `ghp_${"a1B2".repeat(9)}`;
    const saved = await cairn.checkpoints.save({ projectPath, summary: "x", anchors: [`src/${secret}/a.js`] });
    expect(JSON.stringify(saved.anchors)).not.toContain(secret);
  });

  it("exports and imports anchors", async () => {
    const cairn = await opened;
    const record = {
      id: "moved",
      summary: "x",
      created_at: "2026-01-01T00:00:00Z",
      anchors: [{ kind: "file", value: "a.js", hash: "00" }],
    };
    await cairn.checkpoints.import({ projectPath, records: [{ ...record, superseded_by: "other" }] });
    const { anchors, supersededBy } = await cairn.checkpoints.get({ projectPath, id: "moved" });
    expect({ anchors, supersededBy }).toEqual({ anchors: record.anchors, supersededBy: "other" });
  });

  it("marks what a record replaces, and refuses an unknown id", async () => {
    const cairn = await opened;
    const old = await cairn.knowledge.save({ projectPath, question: "Which port?", answer: "80" });
    const added = await cairn.knowledge.save({ projectPath, question: "Which port?", answer: "8080", supersedes: [old.id] });
    expect((await cairn.knowledge.get({ projectPath, id: old.id })).supersededBy).toBe(added.id);
    await expect(cairn.checkpoints.save({ projectPath, summary: "x", supersedes: ["never"] })).rejects.toThrow("No checkpoint");
  });
});
