import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/model/limits.ts";
import { open } from "../../src/open/open.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { logger } from "../../src/telemetry/logger.ts";
import { testEmbedder } from "../support/embedders.ts";
import { type Planted, plantedSecrets } from "./planted.ts";

const folders: string[] = [];
const folder = () => {
  folders.push(mkdtempSync(join(tmpdir(), "cairn-redaction-")));
  return folders.at(-1)!;
};
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true });
});

/** An embedding service that remembers what it was sent. */
function listening(): Embedder & { heard: string[] } {
  const inner = testEmbedder();
  const heard: string[] = [];
  return {
    ...inner,
    heard,
    embed(texts, options) {
      heard.push(...texts);
      return inner.embed(texts, options);
    },
  };
}

/** The longest part of a secret without line ends: what a search of bytes can find. */
const needle = ({ secret }: Planted) => secret.split(/\n|\\n/).sort((a, b) => b.length - a.length)[0]!;

const fits = (text: string, limit: number) => text.length <= limit;

describe("planted secrets of every kind", () => {
  const planted = plantedSecrets(2026);
  const project_path = "/home/someone/app";

  it("reach neither the database and its log, nor the program's log, nor the embedding model, by any field of save, update or search", async () => {
    const dataDir = folder();
    const embedder = listening();
    const lines: string[] = [];
    const log = logger({ level: "debug", pretty: false, write: (line) => lines.push(line) });
    const cairn = await open({ dataDir, embedder: [embedder] });
    const call = (name: string, input: unknown) =>
      invoke(cairn, operations.find((one) => one.name === name)!, input, { caller: LOCAL_CALLER, log, edge: "cli" });
    const answers: unknown[] = [];
    for (const one of planted) {
      const saved = await call("checkpoint_save", {
        project_path,
        summary: fits(one.text, LIMITS.summaryChars) ? one.text : "long",
        description: `Done so far:\n${one.text}\nNext: deploy`,
        context: {
          ...(fits(one.text, LIMITS.contextValueChars) && { note: one.text }),
          ...(fits(one.text, LIMITS.contextKeyChars) && { [one.text]: "x" }),
        },
        tags: fits(one.text, LIMITS.tagChars) ? [one.text] : [],
      });
      expect(saved.redacted, one.kind).toContainEqual({ kind: one.kind, field: "description", count: 1 });
      answers.push(saved);
      answers.push(await call("checkpoint_update", { project_path, id: saved.id, description: `changed: ${one.text}` }));
      if (fits(one.text, LIMITS.queryChars)) answers.push(await call("checkpoint_search", { project_path, query: one.text }));
      log.warn({ note: one.text, err: new Error(one.text) }, one.text);
    }
    answers.push(await call("checkpoint_list", { project_path, limit: 100 }));
    const files = () => readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const bytes = () => files().map((entry) => readFileSync(join(entry.parentPath, entry.name)));
    const opened = bytes(); // with the write-ahead log still there
    expect(files().map(({ name }) => name.replace(/^.*\.db/, ".db"))).toEqual(expect.arrayContaining([".db", ".db-wal"]));
    await cairn.close();
    const closed = bytes();
    expect(Buffer.concat(opened).includes("[redacted:github-token]")).toBe(true);
    expect(embedder.heard.length).toBeGreaterThan(planted.length);
    const logged = lines.join("");
    expect(logged).toContain("[redacted:github-token]");
    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
    const reported = JSON.stringify(answers);
    for (const one of planted) {
      const secret = needle(one);
      const where = {
        disk: [...opened, ...closed].some((content) => content.includes(secret)),
        log: logged.includes(secret),
        embedder: embedder.heard.some((text) => text.includes(secret)),
        answers: reported.includes(secret),
      };
      expect({ kind: one.kind, ...where }).toEqual({ kind: one.kind, disk: false, log: false, embedder: false, answers: false });
    }
  });

  it("are known by the name of their pair, and pairs whose keys were secrets both stay", async () => {
    const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
    const [one, two] = [1, 2].map((seed) => plantedSecrets(seed).find(({ kind }) => kind === "npm-token")!.secret);
    const saved = await cairn.checkpoints.save({
      projectPath: project_path,
      summary: "Pairs",
      context: { db_password: "hunter2x", branch: "main", [one!]: "first", [two!]: "second" },
    });
    expect(saved.context).toEqual({
      db_password: "[redacted:password]",
      branch: "main",
      "[redacted:npm-token]": "first",
      "[redacted:npm-token] 2": "second",
    });
    expect(saved.redacted).toEqual([
      { kind: "password", field: "context", count: 1 },
      { kind: "npm-token", field: "context", count: 2 },
    ]);
    await cairn.close();
  });

  it("are not seen in the id of an agent's session, which is no credential", async () => {
    const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
    const { secret } = planted.find(({ kind }) => kind === "stripe-key")!;
    const save = (session_id: string) => cairn.checkpoints.save({ projectPath: project_path, summary: "Session", context: { session_id } });
    for (const id of ["0f8fad5b-d9cd-469f-a165-70867728950e", "ses_6a1b9Zk3LmQx7RtVw2Ny"])
      expect((await save(id)).context).toEqual({ session_id: id });
    expect((await save(secret)).context).toEqual({ session_id: "[redacted:stripe-key]" });
    await cairn.close();
  });

  it("stay where the person allows them, and nothing is reported where there is nothing", async () => {
    const { secret } = planted.find(({ kind }) => kind === "stripe-key")!;
    const cairn = await open({ storage: "memory", embedder: { kind: "none" }, redaction: { allow: ["^sk_live_a1B2"] } });
    const saved = await cairn.checkpoints.save({ projectPath: project_path, summary: `uses ${secret}` });
    expect(saved.summary).toBe(`uses ${secret}`);
    expect(saved).not.toHaveProperty("redacted");
    await cairn.close();
  });

  it("keep every text within its limit, whole characters only", async () => {
    const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
    const summary = `password=abc12x ${"😀".repeat(242)}`;
    expect(summary.length).toBe(500);
    const saved = await cairn.checkpoints.save({ projectPath: project_path, summary });
    expect(saved.summary.length).toBeLessThanOrEqual(LIMITS.summaryChars);
    expect(saved.summary.isWellFormed()).toBe(true);
    await cairn.close();
  });
});
