import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkpointSave, checkpointSearch } from "../../src/checkpoints/operations.ts";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { embeddingsList } from "../../src/recall/operations.ts";
import { json, openAiStandIn, type StandIn, type Trouble } from "../support/embedding-servers.ts";

const project_path = "/srv/troubled";
const refusal = (status: number, message: string, type: string, headers = {}): Trouble => {
  return (_, response) => json(response, status, { error: { message, type, param: null, code: null } }, headers);
};
const vectors =
  (vectorOf: () => unknown): Trouble =>
  ({ body }, response) =>
    json(response, 200, { object: "list", data: body.input.map((_, index) => ({ object: "embedding", index, embedding: vectorOf() })) });

const TROUBLES: Record<string, Trouble> = {
  "hangs up": (_, response) => response.destroy(),
  "is slow": () => {}, // no answer at all, as long as anybody cares to wait
  "answers 429": refusal(429, "Rate limit reached for text-embedding-3-small", "requests", { "retry-after": "7" }),
  "answers 413": refusal(413, "Request too large", "invalid_request_error"),
  "answers 500": refusal(500, "The server had an error while processing your request", "server_error"),
  "answers garbage": (_, response) => response.writeHead(200, { "content-type": "application/json" }).end('{"data": [{"embed'),
  "answers JSON of another form": (_, response) => json(response, 200, { hello: ["world"] }),
  "gives a wrong dimension": vectors(() => [1, 0, 0]),
  "gives NaN": vectors(() => Buffer.from(new Float32Array(1536).fill(Number.NaN).buffer).toString("base64")),
  "gives zeros": vectors(() => Array(1536).fill(0)),
};

interface SearchAnswer {
  readonly results: readonly {
    readonly checkpoint: { readonly id: string };
    readonly score: number;
    readonly found: { readonly semantic?: { readonly rank: number }; readonly keyword?: { readonly rank: number } };
  }[];
  readonly degraded: readonly string[];
}

describe("a provider in trouble", () => {
  let standIn: StandIn;
  let dataDir: string;
  const opened: Cairn[] = [];
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-trouble-"));
    standIn = await openAiStandIn();
  });
  afterEach(async () => {
    for (const cairn of opened.splice(0)) await cairn.close();
    await standIn.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  async function start(): Promise<Cairn> {
    const cairn = await open({ dataDir, embedder: { kind: "openai", baseUrl: `${standIn.url}/v1`, apiKey: "sk-test" } });
    opened.push(cairn);
    return cairn;
  }
  // Through the edge's own way in, so that the operations' time limits are in force.
  const save = (cairn: Cairn, summary: string) =>
    invoke(cairn, checkpointSave, { project_path, summary }, { caller: LOCAL_CALLER }) as Promise<{
      id: string;
      embedding_pending?: boolean;
    }>;
  const search = async (cairn: Cairn, query: string, mode = "hybrid") =>
    (await invoke(cairn, checkpointSearch, { project_path, query, mode }, { caller: LOCAL_CALLER })) as unknown as SearchAnswer;

  it.each(Object.keys(TROUBLES))(
    "that %s fails no save; keyword search finds the record at once, semantic search when the provider is back",
    async (name) => {
      let cairn = await start();
      const before = await save(cairn, "made while all was well");
      expect(before.embedding_pending).toBeUndefined();

      standIn.lasting = TROUBLES[name];
      const summary = "the exporter writes every row twice";
      const saved = await save(cairn, summary);
      expect(saved.embedding_pending).toBe(true);
      const during = await search(cairn, "exporter");
      expect(during.results.map(({ checkpoint, found }) => [checkpoint.id, found.keyword?.rank, found.semantic])).toEqual([
        [saved.id, 1, undefined],
      ]);
      expect(during.degraded).toHaveLength(1);
      expect(during.degraded[0]).toContain("only keywords were searched");
      await expect(search(cairn, "exporter", "semantic")).rejects.toMatchObject({ code: "unavailable" });

      // A later process, with the provider well again: the first search that meets the record sees to its vector.
      standIn.lasting = undefined;
      await cairn.close();
      cairn = await start();
      await vi.waitFor(
        async () => {
          const { results, degraded } = await search(cairn, summary);
          expect(results[0]).toMatchObject({ checkpoint: { id: saved.id }, found: { semantic: { rank: 1 }, keyword: { rank: 1 } } });
          expect(results[0]!.score).toBeGreaterThan(0.99);
          expect(degraded).toEqual([]);
        },
        { timeout: 120_000, interval: 200 },
      );
      const { versions } = await invoke(cairn, embeddingsList, { project_path, collection: "checkpoints" }, { caller: LOCAL_CALLER });
      expect(versions).toMatchObject([{ model: "text-embedding-3-small", records: 2, vectors: 2 }]);
    },
  );

  it("fills in by itself what was saved while the provider was away, in the same process", async () => {
    const cairn = await start();
    standIn.lasting = TROUBLES["answers 413"];
    const saved = await save(cairn, "saved before the provider ever answered");
    expect(saved.embedding_pending).toBe(true);
    standIn.lasting = undefined;
    await vi.waitFor(
      async () => {
        const [version] = await cairn.embeddings.list({ projectPath: project_path, collection: "checkpoints" });
        expect(version).toMatchObject({ records: 1, vectors: 1 });
      },
      { timeout: 120_000, interval: 100 },
    );
    expect((await search(cairn, "saved before the provider ever answered")).results[0]!.found.semantic).toMatchObject({ rank: 1 });
  });
});
