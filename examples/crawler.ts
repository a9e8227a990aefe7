/** A crawler that is killed during its work and resumes. Run it with: npm run example -- crawler */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { END, graph, openRunStore } from "../src/runs.ts"; // in your own project: from "cairn-memory/runs"

/** A small web, so that the example needs no network. */
const WEB: Readonly<Record<string, readonly string[]>> = {
  "/": ["/docs", "/blog"],
  "/docs": ["/docs/install", "/docs/runs"],
  "/docs/install": ["/"],
  "/docs/runs": ["/blog/crashes"],
  "/blog": ["/blog/crashes", "/blog/hello"],
  "/blog/crashes": [],
  "/blog/hello": ["/"],
};

interface Crawl {
  readonly waiting: readonly string[];
  readonly seen: readonly string[];
}

const crawl = (log: string) =>
  graph<Crawl>({ name: "crawl" })
    .node(
      "fetch",
      async ({ waiting: [page, ...rest], seen }, { signal }) => {
        appendFileSync(log, `${page}\n`);
        if (process.env.CRAWL_FOLDER && seen.length > 4) process.kill(process.pid, "SIGKILL"); // simulates a power failure
        await sleep(30, undefined, { signal }); // simulates the download
        const found = WEB[page!]!.filter((link) => ![...seen, ...rest].includes(link));
        return { waiting: [...rest, ...found], seen: [...seen, ...found] };
      },
      { timeoutMs: 30_000, retry: { attempts: 3 } },
    )
    .branch("fetch", ({ waiting }) => (waiting.length > 0 ? "fetch" : END), ["fetch", END])
    .entry("fetch")
    .compile();

const folder = process.env.CRAWL_FOLDER ?? mkdtempSync(join(tmpdir(), "cairn-example-"));
const log = join(folder, "fetched.log");
const store = await openRunStore({ storage: "sqlite", path: join(folder, "runs.db") });

if (process.env.CRAWL_FOLDER) {
  // The crawler runs in another process, which is killed after its third page.
  await crawl(log).run({ waiting: ["/"], seen: ["/"] }, { store, runId: "crawl-1", leaseMs: 5_000 });
} else {
  writeFileSync(log, "");
  const env = { ...process.env, CRAWL_FOLDER: folder };
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url)], { env, stdio: "inherit" });
  const [, signal] = await once(child, "exit");
  assert.equal(signal, "SIGKILL");
  console.log("killed after:", readFileSync(log, "utf8").trim().split("\n").join(" "));

  // Its lease expires a few seconds later; then another process can resume the run.
  let recovered: Awaited<ReturnType<ReturnType<typeof crawl>["recover"]>> = [];
  while (recovered.length === 0) {
    await sleep(100);
    recovered = await crawl(log).recover({ store });
  }
  const [first] = recovered;
  assert.ok(first && "result" in first && first.result.status === "completed");
  assert.deepEqual([...first.result.state.seen].sort(), Object.keys(WEB).sort());
  const fetched = readFileSync(log, "utf8").trim().split("\n");
  // Every page appears once; only the page that was fetched during the kill may appear twice.
  assert.ok(fetched.length <= Object.keys(WEB).length + 1);
  assert.equal(new Set(fetched).size, Object.keys(WEB).length);
  console.log("all pages:", fetched.join(" "));
  await store.close();
  rmSync(folder, { recursive: true });
}
