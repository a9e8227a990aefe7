import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRunStore, type RunStoreOptions } from "../../src/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-faults-"));
const shim = join(folder, "fail-nth.so");
beforeAll(() => execFileSync("cc", ["-shared", "-fPIC", "-O1", "-w", "-o", shim, join(import.meta.dirname, "fail-nth.c"), "-ldl"]));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Report {
  acknowledged: string[];
  errors: number;
  runId: string;
}

/** Runs the script in a process of its own whose n-th write, sync, truncation, link, rename or unlink of the store's files fails. */
async function withFault(options: RunStoreOptions, nth: number): Promise<Report> {
  const env = { ...process.env, LD_PRELOAD: shim, FAIL_PATH: "faulty-", FAIL_NTH: String(nth) };
  const script = join(import.meta.dirname, "fault-process.mjs");
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(options)], { env });
  return JSON.parse(stdout);
}

describe.each<[string, (n: number) => RunStoreOptions]>([
  ["files", (n) => ({ storage: "file", folder: join(folder, `faulty-${n}`) })],
  ["SQLite", (n) => ({ storage: "sqlite", path: join(folder, `faulty-${n}.db`) })],
])("the n-th write, sync or rename fails, for every n, on %s", (_, place) => {
  it("either the error is reported or the data is there", { timeout: 900_000 }, async () => {
    let clean = 0;
    let reported = 0;
    for (let nth = 1; clean === 0; nth += 3)
      await Promise.all(
        [nth, nth + 1, nth + 2].map(async (n) => {
          const { acknowledged, errors, runId } = await withFault(place(n), n);
          if (errors > 0) reported++;
          if (acknowledged.length === 6 && errors === 0 && n > 20) clean++;
          const store = await openRunStore(place(n));
          for (const nodeId of acknowledged) {
            if (nodeId === "n0") continue; // deleted by the script
            const { state } = await store.load(runId, nodeId);
            const text = Buffer.from(state).toString();
            expect(text, `${nodeId} after fault ${n}`).toBe(
              nodeId === "first" ? "first" : `${nodeId[1]}:${"x".repeat(Number(nodeId[1]) * 700)}`,
            );
          }
          // One fault is met once; what comes after it works again.
          expect(errors, `fault ${n}`).toBeLessThanOrEqual(1);
          expect(acknowledged.length, `fault ${n}`).toBeGreaterThanOrEqual(5);
          expect(
            (await store.history(runId, { limit: 100 })).every((info, i, all) => i === 0 || info.sequence < all[i - 1]!.sequence),
          ).toBe(true);
          await store.close();
        }),
      );
    expect(reported).toBeGreaterThan(5);
  });
});
