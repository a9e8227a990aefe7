import { randomUUID } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type Cairn, open } from "../src/index.ts";
import { startBrowser } from "./console/chromium.ts";
import { serveConsole } from "./console/serve-console.ts";
import { countCalls, settle } from "./console/settle.ts";
import { refund } from "./console/world-runs.ts";
import { type Bench, type Benchmark, median, root } from "./frame.ts";

const CHECKPOINTS = 100_000;
const PROJECTS = 50;
const RUNS = 1_000;
const ROUNDS = 9;
const BATCH = 100;
const PROJECT = "/home/me/project-0";
const PAGES = ["timeline", "search", "sessions", "knowledge", "code", "runs", "systems", "health"];

/** Opens the console on a large store in a real browser, in turns with a trivial page. */
export default {
  summary: `the console with ${CHECKPOINTS} checkpoints, ${PROJECTS} projects and ${RUNS} runs, against a trivial page`,
  async run(bench) {
    const folder = bench.scratch();
    const cairn = await open({ dataDir: folder, stateDir: join(folder, "state"), embedder: { kind: "none" } });
    bench.defer(() => cairn.close());
    await fill(bench, cairn);
    const server = await serveConsole(cairn);
    bench.defer(() => server.close());
    const browser = await startBrowser();
    bench.defer(() => browser.close());
    bench.record({ name: "gzip_bytes", value: compressedBytes(), unit: "bytes" });
    await paint(bench, browser, server.link);
    await pages(bench, browser, server);
  },
} satisfies Benchmark;

async function fill(bench: Bench, cairn: Cairn): Promise<void> {
  bench.log(`Storing ${CHECKPOINTS} checkpoints …`);
  const now = Date.now();
  const each = CHECKPOINTS / PROJECTS;
  for (let project = 0; project < PROJECTS; project++)
    for (let start = 0; start < each; start += BATCH) {
      const records = Array.from({ length: BATCH }, (_, index) => {
        const age = (start + index) * 15 * 60_000 + project * 1_000;
        return {
          id: randomUUID(),
          summary: `Step ${start + index} of project ${project}: the parser reads the next block`,
          description: "The lexer keeps its state between blocks. Next: errors with line numbers.",
          tags: [`tag-${index % 20}`, "parser"],
          context: { branch: `branch-${index % 5}`, session_id: `session-${project}-${Math.floor((start + index) / 8)}` },
          created_at: new Date(now - age).toISOString(),
        };
      });
      await cairn.checkpoints.import({ projectPath: `/home/me/project-${project}`, records });
    }
  bench.log(`Storing ${RUNS} runs …`);
  for (let index = 0; index < RUNS; index++)
    await refund.run(
      { customer: "customer 15", amount: 40, checks: 2 },
      { store: cairn.runs.store, runId: `refund-${index}`, project: PROJECT },
    );
}

/** Returns the bytes of all files of the console, compressed: a visit transfers a part of them. */
function compressedBytes(): number {
  const folder = join(root, "dist", "console");
  const files = readdirSync(folder, { recursive: true }).map(String);
  return files.filter((name) => name.endsWith(".gz")).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/** Measures the first contentful paint of the console and of a trivial page, in turns and with empty caches. */
async function paint(bench: Bench, browser: Browser, link: (hash: string) => Promise<string>): Promise<void> {
  const trivial = createServer((_request, response) => {
    response.setHeader("content-type", "text/html").end("<!doctype html><title>Trivial</title><h1>Hello</h1>");
  });
  await new Promise<void>((resolve) => trivial.listen(0, "127.0.0.1", resolve));
  bench.defer(() => void trivial.close());
  const trivialUrl = `http://127.0.0.1:${(trivial.address() as AddressInfo).port}/`;
  const samples = { trivial: [] as number[], console: [] as number[], record: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    const first = await withPage(browser, async (page) => {
      await page.goto(trivialUrl);
      return firstPaint(page);
    });
    const [second, record] = await withPage(browser, async (page) => {
      await page.goto(await link("#/timeline"));
      const painted = await firstPaint(page);
      await page.locator("article").first().waitFor();
      return [painted, Number(await page.evaluate("performance.now()"))] as const;
    });
    if (round === 0) continue; // warms the browser and the store
    samples.trivial.push(first);
    samples.console.push(second);
    samples.record.push(record);
  }
  const [trivialMs, consoleMs] = [median(samples.trivial), median(samples.console)];
  bench.record({ name: "fcp_trivial_ms", value: trivialMs, unit: "ms", samples: samples.trivial });
  bench.record({ name: "fcp_ms", value: consoleMs, unit: "ms", samples: samples.console, against: "fcp_trivial_ms" });
  bench.record({ name: "fcp_ratio", value: consoleMs / trivialMs, unit: "ratio" });
  bench.record({ name: "first_record_ms", value: median(samples.record), unit: "ms", samples: samples.record });
}

async function firstPaint(page: Page): Promise<number> {
  const paints = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)";
  for (;;) {
    const [time] = (await page.evaluate(paints)) as number[];
    if (time !== undefined) return time;
    await page.waitForTimeout(20);
  }
}

/** Measures the calls of each page, and the memory of the tab: at first, and after scrolling through two thousand checkpoints. */
async function pages(
  bench: Bench,
  browser: Browser,
  { url, link }: { url: string; link: (hash: string) => Promise<string> },
): Promise<void> {
  await withPage(browser, async (page) => {
    await countCalls(page);
    await page.goto(await link(`#/timeline?project=${encodeURIComponent(PROJECT)}`));
    await page.locator("article").first().waitFor();
    bench.record({ name: "heap_mb", value: await heapMb(page), unit: "MB" });
    for (let scroll = 0; scroll < 60; scroll++) {
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
      await page.waitForTimeout(150);
    }
    bench.record({ name: "heap_after_scrolling_mb", value: await heapMb(page), unit: "MB" });
    bench.record({
      name: "elements_after_scrolling",
      value: Number(await page.evaluate("document.querySelectorAll('*').length")),
      unit: "elements",
    });
    for (const name of PAGES) {
      const samples: number[] = [];
      for (let round = 0; round < 3; round++) {
        await page.goto("about:blank");
        await page.goto(`${url}/#/${name}?project=${encodeURIComponent(PROJECT)}&q=${name === "search" ? "parser" : ""}`);
        await settle(page);
        const slowest =
          "Math.max(0, ...performance.getEntriesByType('resource').filter(({ initiatorType, name }) => initiatorType === 'fetch' && !name.includes('/v1/events')).map(({ duration }) => duration))";
        samples.push(Number(await page.evaluate(slowest)));
      }
      bench.record({ name: `api_${name}_ms`, value: median(samples), unit: "ms", samples });
    }
  });
}

async function heapMb(page: Page): Promise<number> {
  const client = await page.context().newCDPSession(page);
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize } = await client.send("Runtime.getHeapUsage");
  await client.detach();
  return usedSize / 1e6;
}

async function withPage<T>(browser: Browser, use: (page: Page) => Promise<T>): Promise<T> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    return await use(await context.newPage());
  } finally {
    await context.close();
  }
}
