import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { type MinilmOptions, minilmEmbedder } from "../../src/embedders/local/minilm.ts";
import type { ProcessEmbedder } from "../../src/embedders/local/model-queue.ts";
import { builtFile } from "../../src/files/built-file.ts";
import { isAlive } from "../support/processes.ts";

const opened: ProcessEmbedder[] = [];
function open(options?: MinilmOptions): ProcessEmbedder {
  const embedder = minilmEmbedder(options);
  opened.push(embedder);
  return embedder;
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((embedder) => embedder.close()));
});

describe("the MiniLM embedder", () => {
  it("finds what is meant ahead of unrelated notes, though no word is shared", async () => {
    const embedder = open();
    const notes = [
      "auth specs are red since we rotate JWTs",
      "add dark mode to the settings page",
      "database migration adds an index to the orders table",
      "bump the Docker base image to bookworm",
      "the CSV export drops the last row",
      "wrote the onboarding guide for new hires",
      "the landing page images are compressed now",
      "investigate slow build on Windows runners",
    ];
    const [query] = await embedder.embed(["session tests fail after token refresh change"], { purpose: "query" });
    const vectors = await embedder.embed(notes, { purpose: "document" });
    const scores = vectors.map((vector) => dot(query!, vector));
    expect(notes[scores.indexOf(Math.max(...scores))]).toBe(notes[0]);
    expect(scores[0]!).toBeGreaterThan(Math.max(...scores.slice(1)) + 0.05);
  });

  it("gives one unit-length vector per text, in order, empty and overlong texts included", async () => {
    const embedder = open();
    const texts = ["", "short", "a longer text ".repeat(5_000), "☃ 北京 \ud800", "short"];
    const vectors = await embedder.embed(texts);
    expect(vectors.map((vector) => vector.length)).toEqual(texts.map(() => embedder.dimension));
    for (const vector of vectors) expect(dot(vector, vector)).toBeCloseTo(1, 4);
    expect(vectors[4]).toEqual(vectors[1]);
    expect(await embedder.embed([])).toEqual([]);
  });

  it("has a new version whenever the model file changes: two models under one version would mix two vector spaces", () => {
    const hash = createHash("sha256")
      .update(readFileSync(builtFile("models/minilm/model.onnx")))
      .digest("hex");
    expect([open().version, hash]).toEqual(["int8-1", "836c286252c380cfec59eb818aa77cc57f3aa0ed2dd4253d85b93c041928e855"]);
  });

  it("gives a text the same vector whatever else is embedded with it", async () => {
    const embedder = open();
    const alone = await embedder.embed(["rotate the signing keys"]);
    const texts = Array.from({ length: 40 }, (_, index) => `text number ${index} ${"and so on ".repeat(index)}`);
    const together = await embedder.embed([...texts, "rotate the signing keys"]);
    expect(together.at(-1)).toEqual(alone[0]);
  });

  it("answers a question while a large job is under way", async () => {
    const embedder = open();
    let indexed = false;
    const job = embedder.embed(Array.from({ length: 300 }, (_, index) => `function number${index}() {}`.repeat(5))).then((vectors) => {
      indexed = true;
      return vectors;
    });
    await embedder.embed(["where are sessions refreshed?"], { purpose: "query" });
    expect(indexed).toBe(false);
    expect(await job).toHaveLength(300);
  });

  it("is loaded on first use, gives its memory back when idle, and comes back", async () => {
    const embedder = open({ idleMs: 50 });
    expect(embedder.pid()).toBeUndefined();
    const [before] = await embedder.embed(["hello"]);
    const pid = embedder.pid()!;
    expect(isAlive(pid)).toBe(true);
    await until(() => embedder.pid() === undefined && !isAlive(pid));
    const [after] = await embedder.embed(["hello"]);
    expect(after).toEqual(before);
  });

  it("rejects what was waiting when its process is killed, and works again on the next call", async () => {
    const embedder = open();
    await embedder.embed(["warm up"]);
    const running = embedder.embed(Array.from({ length: 200 }, () => "some text ".repeat(100)));
    const waiting = embedder.embed(["behind it"]);
    process.kill(embedder.pid()!, "SIGKILL");
    await expect(running).rejects.toMatchObject({ code: "unavailable" });
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    expect(await embedder.embed(["again"])).toHaveLength(1);
  });

  it("comes back after its process was killed while idle", async () => {
    const embedder = open();
    await embedder.embed(["warm up"]);
    const pid = embedder.pid()!;
    process.kill(pid, "SIGKILL");
    await until(() => embedder.pid() === undefined);
    expect(await embedder.embed(["again"])).toHaveLength(1);
  });

  it("stops when the caller cancels, and leaves the others alone", async () => {
    const embedder = open();
    const controller = new AbortController();
    const cancelled = embedder.embed(
      Array.from({ length: 500 }, () => "some text ".repeat(100)),
      { signal: controller.signal },
    );
    const other = embedder.embed(["not cancelled"]);
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ name: "AbortError" });
    expect(await other).toHaveLength(1);
    await expect(embedder.embed(["late"], { signal: controller.signal })).rejects.toMatchObject({ name: "AbortError" });
  });

  it("says what is wrong when the model files are missing", async () => {
    const embedder = open({ modelDir: mkdtempSync(join(tmpdir(), "cairn-no-model-")) });
    await expect(embedder.embed(["hello"])).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("tokenizer.json"),
    });
  });

  it("refuses work after it was closed, and ends what was under way", async () => {
    const embedder = open();
    await embedder.embed(["warm up"]);
    const pid = embedder.pid()!;
    const running = embedder.embed(Array.from({ length: 200 }, () => "some text ".repeat(100)));
    const outcome = expect(running).rejects.toMatchObject({ name: "CairnError" });
    await embedder.close();
    await outcome;
    await until(() => !isAlive(pid));
    await expect(embedder.embed(["more"])).rejects.toMatchObject({ code: "unavailable" });
  });

  it("ends with its parent, also when that is killed in the middle of work", async () => {
    const program = `
      const { minilmEmbedder } = await import(${JSON.stringify(`file://${builtFile("embedders/local/minilm.js")}`)});
      const embedder = minilmEmbedder();
      await embedder.embed(["hello"]);
      console.log(embedder.pid());
      await embedder.embed(Array.from({ length: 5_000 }, () => "some text ".repeat(100)));`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(line.toString());
    expect(isAlive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await until(() => !isAlive(pid));
  });

  it("does not keep the program alive, and leaves no process behind", async () => {
    const program = `
      const { minilmEmbedder } = await import(${JSON.stringify(`file://${builtFile("embedders/local/minilm.js")}`)});
      const embedder = minilmEmbedder();
      const [vector] = await embedder.embed(["hello"]);
      console.log(vector.length, embedder.pid());`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 250_000 });
    const [length, pid] = stdout.trim().split(" ").map(Number);
    expect(length).toBe(384);
    await until(() => !isAlive(pid!));
  });
});

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, index) => sum + value * b[index]!, 0);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}
