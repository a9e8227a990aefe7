import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

const WANTED = "auth specs are red since we rotate JWTs";

/** Other work of the same weeks. The first two share words with the question; the wanted one shares none. */
const UNRELATED = [
  "tests for the CSV importer fail on Windows line endings",
  "the pull request template asks for a change log entry",
  "migrated the invoices table to partitioned storage",
  "dark mode colours for the settings page",
  "image thumbnails are resized in a worker queue",
  "upgraded the compiler and fixed the new strictness errors",
  "search index rebuild takes forty minutes on staging",
  "wrote the onboarding guide for new colleagues",
  "Kubernetes pods are evicted for lack of memory",
  "payment webhooks arrive twice, made the handler idempotent",
  "translations for Portuguese and Polish are complete",
  "flaky screenshot comparison in the checkout page",
  "reduced the bundle size by splitting the chart library",
  "backup restore drill went well, took twelve minutes",
  "rate limiting for the public API by client address",
];

it("ranks the checkpoint with the same meaning first when the network is off", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-offline-"));
  try {
    const order = { dataDir, texts: [...UNRELATED, WANTED], query: "session tests fail after token refresh change" };
    const noNetwork = join(import.meta.dirname, "../support/no-network.cjs");
    const child = spawnSync(
      process.execPath,
      ["--require", noNetwork, join(import.meta.dirname, "offline-process.mjs"), JSON.stringify(order)],
      { encoding: "utf8" },
    );
    expect(child.stderr.split("\n").filter((line) => line.startsWith("NETWORK"))).toHaveLength(1); // the one that shows the block works
    const { found, ...rest } = JSON.parse(child.stdout);
    expect(rest).toEqual({ model: "all-MiniLM-L6-v2", degraded: [], missing: 0, notices: [], refused: true });
    expect(found.map(({ summary }: { summary: string }) => summary)[0], JSON.stringify(found, null, 1)).toBe(WANTED);
    expect(found).toHaveLength(UNRELATED.length + 1);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
