import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { costMeter } from "../../src/embedders/pipeline.ts";
import { batches } from "../../src/embedders/remote/batches.ts";
import { breaker } from "../../src/embedders/remote/breaker.ts";
import { openAiEmbedder } from "../../src/embedders/remote/openai.ts";
import { pace } from "../../src/embedders/remote/pace.ts";
import { teiEmbedder } from "../../src/embedders/remote/tei.ts";
import { estimateTokens } from "../../src/text/estimate-tokens.ts";
import { json, openAiStandIn, type StandIn, teiStandIn } from "../support/embedding-servers.ts";

/** Waits are noted, not waited for. */
function noted() {
  const waits: number[] = [];
  return { waits, options: { sleep: async (ms: number) => void waits.push(ms), random: () => 1, policy: { timeoutMs: 10_000 } } };
}

describe("the OpenAI embedder", () => {
  let server: StandIn;
  beforeEach(async () => {
    server = await openAiStandIn();
  });
  afterEach(() => server.close());
  const embedder = (more = {}) => openAiEmbedder({ apiKey: "sk-test", baseUrl: `${server.url}/v1`, ...noted().options, ...more });

  it("gives unit vectors in the order of the texts, with the key, as base64", async () => {
    const [a, b] = await embedder().embed(["first", "second"]);
    expect(a).toHaveLength(1536);
    expect(Math.hypot(...a!)).toBeCloseTo(1, 5);
    expect((await embedder().embed(["second"]))[0]).toEqual(b);
    expect(server.requests[0]).toMatchObject({
      path: "/v1/embeddings",
      authorization: "Bearer sk-test",
      body: { model: "text-embedding-3-small", encoding_format: "base64" },
    });
  });

  it("bills by the provider's usage, and by an estimate where it reports none or nonsense", async () => {
    const cost = async (usage: unknown, texts = ["a short text", "another"]) => {
      const meter = costMeter(0.02);
      if (usage !== undefined)
        server.troubles.push(({ body }, response) =>
          json(response, 200, {
            data: body.input.map((_, index) => ({ index, embedding: [1, ...Array(1535).fill(0)] })),
            ...(usage !== "absent" && { usage }),
          }),
        );
      await meter.metered(embedder()).embed(texts);
      return meter.read();
    };
    expect(await cost(undefined)).toMatchObject({ texts: 2, tokens: 10, dollars: (10 * 0.02) / 1e6 }); // the stand-in counts five a text
    expect(await cost({ prompt_tokens: 1_234, total_tokens: 1_234 })).toMatchObject({ tokens: 1_234 });
    expect(await cost({ prompt_tokens: 77 })).toMatchObject({ tokens: 77 });
    const estimate = estimateTokens("a short text") + estimateTokens("another");
    for (const usage of ["absent", null, { total_tokens: "many" }, { total_tokens: -1 }, {}])
      expect(await cost(usage)).toMatchObject({ tokens: estimate });
  });

  it("counts what was billed although a later request of the call failed", async () => {
    const meter = costMeter(0.02);
    server.troubles.push(
      ({ body }, response) =>
        json(response, 200, {
          data: body.input.map((_, index) => ({ index, embedding: [1, ...Array(1535).fill(0)] })),
          usage: { total_tokens: 500 },
        }),
      (_, response) => json(response, 400, { error: { message: "no" } }),
    );
    await expect(meter.metered(embedder()).embed(Array.from({ length: 2_100 }, (_, index) => `text ${index}`))).rejects.toThrow(/refused/);
    expect(meter.read()).toMatchObject({ texts: 0, tokens: 500 });
  });

  it("asks for fewer dimensions, as a space of its own", async () => {
    const small = embedder({ dimensions: 256 });
    expect((await small.embed(["x"]))[0]).toHaveLength(256);
    expect(small).toMatchObject({ dimension: 256, version: "1-256" });
    expect(() => embedder({ model: "somebody/else" })).toThrow(/dimensions/);
  });

  it("sends at most 2,048 texts a request, empty ones included, and cuts long ones to 8,191 tokens", async () => {
    const texts = [...Array.from({ length: 2_049 }, (_, i) => `t${i}`), "", "word ".repeat(20_000)];
    expect(await embedder({ policy: { timeoutMs: 30_000 } }).embed(texts)).toHaveLength(2_051);
    expect(server.requests.map(({ body }) => body.input.length)).toEqual([2_048, 3]);
    expect(server.requests[1]!.body.input[2]!.length).toBeLessThan(60_000);
  });

  it("waits as long as the service asks, then continues", async () => {
    const { waits, options } = noted();
    const limited = (headers: Record<string, string>) => (_: unknown, response: Parameters<typeof json>[0]) =>
      json(
        response,
        429,
        { error: { message: "Rate limit reached", type: "requests", param: null, code: "rate_limit_exceeded" } },
        headers,
      );
    server.troubles.push(limited({ "retry-after-ms": "1234" }), limited({ "retry-after": "2" }), limited({}));
    await embedder(options).embed(["x"]);
    expect(waits).toEqual([1_234, 2_000, 2_000]);
  });

  it.each([
    [500, { error: { message: "The server had an error", type: "server_error", param: null, code: null } }],
    [502, "<html>Bad gateway</html>"],
    [408, {}],
  ])("tries again after %i", async (status, body) => {
    server.troubles.push((_, response) => json(response, status, body));
    await expect(embedder().embed(["x"])).resolves.toHaveLength(1);
    expect(server.requests).toHaveLength(2);
  });

  it.each([
    [401, { error: { message: "Incorrect API key provided", type: "invalid_request_error", param: null, code: "invalid_api_key" } }, /key/],
    [400, { error: { message: "'$.input' is invalid", type: "invalid_request_error", param: null, code: null } }, /refused.*invalid/],
    [
      429,
      { error: { message: "You exceeded your current quota", type: "insufficient_quota", param: null, code: "insufficient_quota" } },
      /quota/,
    ],
  ])("gives up at once on %i, saying why", async (status, body, message) => {
    server.troubles.push((_, response) => json(response, status, body));
    await expect(embedder().embed(["x"])).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
    expect(server.requests).toHaveLength(1);
  });

  it("does what x-should-retry says", async () => {
    server.troubles.push((_, response) => json(response, 500, {}, { "x-should-retry": "false" }));
    await expect(embedder().embed(["x"])).rejects.toMatchObject({ code: "unavailable" });
    expect(server.requests).toHaveLength(1);
  });

  it("halves a batch that is too large, and reports it when a single text is", async () => {
    const tooLarge = (_: unknown, response: Parameters<typeof json>[0]) => void response.writeHead(413).end("too large");
    server.troubles.push(tooLarge);
    expect(await embedder().embed(["a", "b", "c"])).toHaveLength(3);
    expect(server.requests.map(({ body }) => body.input.length)).toEqual([3, 2, 1]);
    server.troubles.push(tooLarge);
    await expect(embedder().embed(["a"])).rejects.toThrow();
  });

  it.each([
    ["garbage instead of JSON", (response: Parameters<typeof json>[0]) => void response.writeHead(200).end("{not json")],
    ["another form", (response: Parameters<typeof json>[0]) => json(response, 200, { vectors: [[1]] })],
    ["a wrong dimension", (response: Parameters<typeof json>[0]) => json(response, 200, { data: [{ index: 0, embedding: [1, 0] }] })],
    ["zeros", (response: Parameters<typeof json>[0]) => json(response, 200, { data: [{ index: 0, embedding: Array(1536).fill(0) }] })],
    [
      "NaN",
      (response: Parameters<typeof json>[0]) =>
        json(response, 200, {
          data: [{ index: 0, embedding: Buffer.from(new Float32Array(1536).fill(Number.NaN).buffer).toString("base64") }],
        }),
    ],
    ["too few", (response: Parameters<typeof json>[0]) => json(response, 200, { data: [] })],
  ])("never passes on %s", async (_, trouble) => {
    server.troubles.push(...Array.from({ length: 5 }, () => (__: unknown, response: Parameters<typeof json>[0]) => trouble(response)));
    await expect(embedder().embed(["x"])).rejects.toMatchObject({ code: "unavailable" });
  });

  it("stops calling a dead service after five failures, and tries again after a pause", async () => {
    let time = 0;
    const guard = breaker({ failures: 5, pauseMs: 30_000, now: () => time });
    const guarded = embedder({ breaker: guard });
    server.troubles.push(...Array.from({ length: 5 }, () => (_: unknown, response: Parameters<typeof json>[0]) => json(response, 503, {})));
    await expect(guarded.embed(["x"])).rejects.toMatchObject({ code: "unavailable" });
    await expect(guarded.embed(["x"])).rejects.toThrow(/is not called for/);
    expect(server.requests).toHaveLength(5);
    time = 30_001;
    await expect(guarded.embed(["x"])).resolves.toHaveLength(1);
    await expect(guarded.embed(["x"])).resolves.toHaveLength(1);
  });

  it("times out on a service that never answers, and stops at once when the caller does", async () => {
    server.troubles.push(...Array.from({ length: 9 }, () => () => {}));
    await expect(embedder({ policy: { timeoutMs: 50, retries: 1 } }).embed(["x"])).rejects.toThrow(/within 50 ms/);
    const abort = new AbortController();
    const waiting = embedder({ policy: { timeoutMs: 10_000 } }).embed(["x"], { signal: abort.signal });
    setTimeout(() => abort.abort(), 30);
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("the TEI embedder", () => {
  it("takes its batch size from /info, which is asked once", async () => {
    const server = await teiStandIn({ batch: 4 });
    const embedder = teiEmbedder({ baseUrl: server.url, ...noted().options });
    expect(await embedder.embed(Array.from({ length: 10 }, (_, i) => (i === 3 ? "" : `text ${i}`)))).toHaveLength(10);
    await embedder.embed(["again"]);
    expect(server.requests.filter(({ path }) => path === "/info")).toHaveLength(1);
    expect(server.requests.filter(({ path }) => path === "/embed").map(({ body }) => body.inputs.length)).toEqual([4, 4, 2, 1]);
    expect(server.requests.at(-1)!.body).toMatchObject({ truncate: true, normalize: true });
    await server.close();
  });

  it("refuses a server that runs another model", async () => {
    const server = await teiStandIn({ model: "somebody/else" });
    await expect(teiEmbedder({ baseUrl: server.url, ...noted().options }).embed(["x"])).rejects.toThrow(/not .*Set embedder.model/);
    await server.close();
  });

  it("tries again when overloaded, and splits a batch that the server finds too big", async () => {
    const server = await teiStandIn();
    const embedder = teiEmbedder({ baseUrl: server.url, ...noted().options });
    await embedder.embed(["warm"]);
    server.troubles.push(
      (_, response) => json(response, 429, { error: "Model is overloaded", error_type: "Overloaded" }),
      (_, response) => json(response, 424, { error: "backend", error_type: "Backend" }),
      (_, response) => json(response, 422, { error: "batch size 2 > maximum allowed batch size 1", error_type: "Validation" }),
    );
    expect(await embedder.embed(["a", "b"])).toHaveLength(2);
    await server.close();
  });
});

it("cuts batches that keep both limits, lose nothing and keep the order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 50 })),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 60 }),
      (costs, texts, tokens) => {
        const cut = batches(costs, { texts, tokens });
        expect(cut.flatMap(({ start, end }) => costs.slice(start, end))).toEqual(costs);
        for (const { start, end } of cut) {
          expect(end - start).toBeLessThanOrEqual(texts);
          expect(end - start === 1 || costs.slice(start, end).reduce((a, b) => a + b, 0) <= tokens).toBe(true);
        }
      },
    ),
  );
});

it("spaces calls out to the rate, after a burst", async () => {
  let time = 0;
  const waits: number[] = [];
  const paced = pace({ perMinute: 60, burst: 2, now: () => time, sleep: async (ms) => void waits.push(ms) });
  for (let i = 0; i < 4; i++) await paced.turn();
  expect(waits).toEqual([1_000, 2_000]);
  time = 60_000;
  await paced.turn();
  expect(waits).toHaveLength(2);
});
