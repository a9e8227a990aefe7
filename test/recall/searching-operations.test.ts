import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { checkpoints } from "../../src/checkpoints/service.ts";
import { parserPool } from "../../src/code/parser-pool.ts";
import { code } from "../../src/code/service.ts";
import { recordMarker } from "../../src/freshness/mark-records.ts";
import { knowledge } from "../../src/knowledge/service.ts";
import { newId, systemClock } from "../../src/model/ids.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import type { Embedders } from "../../src/ports/embedders.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";
import { logger } from "../../src/telemetry/logger.ts";
import { redactor } from "../../src/text/redact.ts";
import { testEmbedder } from "../support/embedders.ts";

const project_path = "/srv/app";
const secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
const log = logger({ level: "error", pretty: false, write: () => {} });
const query = `deploy with ${secret}`;

/** Input of every operation that searches. An operation that takes a query must be listed here. */
const SEARCHES: Readonly<Record<string, { readonly input: Record<string, unknown>; readonly collection: string }>> = {
  checkpoint_search: { input: { project_path, query }, collection: `checkpoints ${project_path}` },
  checkpoint_search_all: { input: { query }, collection: `checkpoints ${project_path}` },
  knowledge_search: { input: { project_path, query }, collection: `knowledge ${project_path}` },
  knowledge_import: {
    input: { project_path, source: "faq", content: '[{"question":"q","answer":"a"}]', validate: JSON.stringify([{ query, id: "x" }]) },
    collection: `knowledge ${project_path}`,
  },
  code_search: { input: { project_path, query }, collection: `code ${project_path}` },
  code_similar: { input: { project_path, text: query }, collection: `code ${project_path}` },
};

describe("every operation that searches", () => {
  const embedder = testEmbedder();
  const sent: string[] = [];
  const listening = {
    ...embedder,
    embed: ((texts, options) => {
      sent.push(...texts);
      return embedder.embed(texts, options);
    }) satisfies typeof embedder.embed,
  };
  const embedders: Embedders = {
    preferred: async () => listening,
    best: async () => listening,
    serving: async () => listening,
    named: async () => listening,
    names: [embedder.model],
    close: async () => {},
  };
  const requested = new Set<string>();
  const request = (collection: string) => void requested.add(collection);
  const backfiller = { schedule: request, scheduleOnce: request, close: async () => {} };
  const parsers = parserPool();
  const storage = memoryStorage();
  const markRecords = recordMarker({ storage, limitMs: 60_000 });
  // No layer around the embedder redacts here, as `open` would: the search itself must.
  const freshness = { anchorRecord: async () => [], markRecords };
  const deps = { storage, embedders, backfiller, now: systemClock, newId, redact: redactor(), deletedDays: 30, ...freshness };
  const services = {
    checkpoints: checkpoints(deps),
    knowledge: knowledge(deps),
    code: code({ ...deps, parsers }),
  };

  beforeAll(async () => {
    await services.checkpoints.save({ projectPath: project_path, summary: "deployed" });
    await services.knowledge.save({ projectPath: project_path, question: "How to deploy?", answer: "With care." });
    await services.code.indexBatch({ projectPath: project_path, files: [{ path: "deploy.txt", content: "deploy\n" }] });
  });
  beforeEach(() => {
    sent.length = 0;
    requested.clear();
  });
  afterAll(() => parsers.close());

  it("is listed in this test", () => {
    const searching = operations.filter(
      ({ name, input }) => /search|similar/.test(name) || "query" in input.shape || "validate" in input.shape,
    );
    expect(searching.map(({ name }) => name).sort()).toEqual(Object.keys(SEARCHES).sort());
  });

  it.each(Object.keys(SEARCHES))("%s removes secrets from the query and requests a backfill", async (name) => {
    const operation = operations.find((one) => one.name === name)!;
    const { input, collection } = SEARCHES[name]!;
    await invoke(services as unknown as Cairn, operation, input, { caller: LOCAL_CALLER, log, edge: "cli" });
    expect(sent.filter((text) => text.startsWith("deploy with")).length).toBeGreaterThan(0);
    expect(sent.join("\n")).not.toContain(secret);
    expect([...requested]).toContain(collection);
  });
});
