import assert from "node:assert/strict";
import { type IndexReport, REPORTS_KEPT } from "../model/index-report.ts";
import type { CodeStore } from "../ports/code-store.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, freshProject } from "./checkpoint-samples.ts";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

function sampleReport(jobId: string, minute: number, change: Partial<IndexReport> = {}): IndexReport {
  return {
    jobId,
    status: "running",
    phase: "sending",
    startedAt: at(minute),
    updatedAt: at(minute),
    filesProcessed: 1,
    filesTotal: 2,
    counts: { indexed: 1, failed: 0 },
    skipped: { ignored: 1 },
    skippedFiles: [{ path: "dist/", reason: "ignored", detail: "dist/ in .gitignore" }],
    failedFiles: [],
    ...change,
  };
}

/** The contract of the reports of index jobs, and of the list of indexed files. */
export const JOB_REPORT_CASES: readonly StorageCase[] = [
  on("returns the last report of each job, newest job first, whatever its text", async (store) => {
    assert.deepEqual(await store.reports(), []);
    const last = sampleReport("a", 1, {
      status: "failed",
      error: "No space left",
      finishedAt: at(3),
      updatedAt: at(3),
      failedFiles: AWKWARD_TEXTS.map((text) => ({ path: text, reason: text })),
    });
    await store.report(sampleReport("a", 1));
    await store.report(sampleReport("b", 2));
    assert.deepEqual(await store.report(last), { cancelRequested: false });
    assert.deepEqual(await store.reports(), [
      { ...sampleReport("b", 2), cancelRequested: false },
      { ...last, cancelRequested: false },
    ]);
  }),

  on("keeps the reports of the newest jobs only", async (store) => {
    for (let job = 0; job < REPORTS_KEPT + 3; job++) await store.report(sampleReport(`job-${job}`, job));
    const kept = (await store.reports()).map(({ jobId }) => jobId);
    assert.equal(kept.length, REPORTS_KEPT);
    assert.deepEqual([kept[0], kept.at(-1)], [`job-${REPORTS_KEPT + 2}`, "job-3"]);
  }),

  on("passes a request to cancel to the next report of the job, and to no job that ended", async (store) => {
    await store.report(sampleReport("a", 1));
    await store.report(sampleReport("b", 2, { status: "completed" }));
    assert.equal((await store.requestCancel("a"))?.cancelRequested, true);
    assert.equal((await store.requestCancel("b"))?.cancelRequested, false);
    assert.equal(await store.requestCancel("never"), undefined);
    assert.deepEqual(await store.report(sampleReport("a", 1)), { cancelRequested: true });
    assert.deepEqual(await store.report(sampleReport("b", 2)), { cancelRequested: false });
  }),

  on("returns pages of the indexed files by path, size or time, with a filter and the number of matches", async (store) => {
    const file = (path: string, bytes: number) => ({
      path,
      contentHash: bytes.toString(16).padStart(64, "0"),
      language: path.endsWith(".py") ? "python" : "typescript",
      bytes,
      lines: 1,
      symbols: [],
      chunks: [],
    });
    await store.commit({ at: at(1), files: [file("src/b.ts", 5), file("src/c.py", 9)] });
    await store.commit({ at: at(2), files: [file("a.ts", 5)] });
    const page = async (query: Partial<Parameters<CodeStore["filePage"]>[0]>) => {
      const { files, total } = await store.filePage({ sortBy: "path", limit: 10, offset: 0, ...query });
      return [files.map(({ path }) => path), total];
    };
    assert.deepEqual(await page({}), [["a.ts", "src/b.ts", "src/c.py"], 3]);
    assert.deepEqual(await page({ sortBy: "bytes", limit: 2 }), [["src/c.py", "a.ts"], 3]);
    assert.deepEqual(await page({ sortBy: "indexed_at", offset: 1 }), [["src/b.ts", "src/c.py"], 3]);
    assert.deepEqual(await page({ glob: "src/**", languages: ["typescript"] }), [["src/b.ts"], 1]);
    assert.deepEqual((await store.filePage({ sortBy: "path", limit: 1, offset: 0 })).files, (await store.files()).slice(0, 1));
  }),

  {
    name: "code: a report changes the mark that the event stream compares",
    async run(storage) {
      const { code, events } = await storage.create(freshProject());
      const before = await events.codeMark();
      await code.report(sampleReport("a", 1));
      const reported = await events.codeMark();
      assert.notEqual(reported, before);
      await code.report(sampleReport("a", 1, { status: "completed", updatedAt: at(2) }));
      assert.notEqual(await events.codeMark(), reported);
    },
  },
];

function on(name: string, run: (store: CodeStore) => Promise<void>): StorageCase {
  return {
    name: `code: ${name}`,
    async run(storage) {
      await run((await storage.create(freshProject())).code);
    },
  };
}
