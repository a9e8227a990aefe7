/** Takes the pictures of docs/console.md in a real browser: npm run screenshots. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../../src/index.ts";
import { root } from "../frame.ts";
import { startBrowser } from "./chromium.ts";
import { serveConsole } from "./serve-console.ts";
import { countCalls, settle } from "./settle.ts";
import { fillWorld } from "./world.ts";
import { SHOP } from "./world-runs.ts";

const IN_SHOP = `project=${encodeURIComponent(SHOP)}`;
const SHOTS: readonly {
  readonly name: string;
  readonly hash: string;
  readonly scheme?: "dark";
  readonly width?: number;
  readonly ready: string;
}[] = [
  { name: "timeline", hash: "#/timeline", ready: "article" },
  { name: "search", hash: `#/search?${IN_SHOP}&q=wrong+sums+in+the+shopping+basket`, ready: ".agent pre" },
  { name: "sessions", hash: `#/sessions?${IN_SHOP}`, ready: ".session" },
  { name: "knowledge", hash: `#/knowledge?${IN_SHOP}&id=refused`, ready: "table" },
  { name: "code", hash: `#/code?${IN_SHOP}`, ready: ".figures" },
  { name: "run", hash: "#/runs?run=refund-17", scheme: "dark", ready: ".graph svg" },
  { name: "systems", hash: "#/systems", ready: ".list li" },
  { name: "health", hash: "#/health", ready: "table" },
  { name: "phone", hash: `#/timeline?${IN_SHOP}`, width: 360, scheme: "dark", ready: "article" },
];

const folder = mkdtempSync(join(tmpdir(), "cairn-screenshots-"));
const target = join(root, "docs", "console");
mkdirSync(target, { recursive: true });
const cairn = await open({ dataDir: folder, stateDir: join(folder, "state") });
await cairn.indexing.start();
await fillWorld(cairn);
const server = await serveConsole(cairn);
const browser = await startBrowser();
for (const { name, hash, scheme = "light", width = 1120, ready } of SHOTS) {
  const page = await browser.newPage({ viewport: { width, height: 700 }, colorScheme: scheme });
  await countCalls(page);
  await page.goto(await server.link(hash));
  await page.locator(ready).first().waitFor();
  await settle(page);
  await page.evaluate("document.activeElement.blur()");
  writeFileSync(join(target, `${name}.png`), await page.screenshot());
  await page.close();
}
await browser.close();
await server.close();
await cairn.close();
rmSync(folder, { recursive: true });
