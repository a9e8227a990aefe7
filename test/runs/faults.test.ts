import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openRunStore } from "../../src/runs.ts";
import { faultShim } from "../faults/fault-shim.ts";

interface Report {
  acknowledged: string[];
  errors: number;
  runId: string;
}

const shim = faultShim();

/** Runs the script in a process of its own whose n-th write, sync, truncation, link, rename or unlink of the store's files fails. */
async function withFault(folder: string, nth: number): Promise<Report> {
  const args = [join(import.meta.dirname, "fault-process.mjs"), JSON.stringify({ storage: "file", folder })];
  const { lines, ended, errors } = await shim.run({ args, path: folder, nth, mode: "EIO" });
  expect(ended, errors).toBe(0);
  return JSON.parse(lines.join(""));
}

// The same for SQLite, with more kinds of faults: test/faults/injected.test.ts.
describe("the file run store when the n-th file operation fails, for every n", () => {
  it("either reports the error or has stored the data", { timeout: 900_000 }, async () => {
    let clean = 0;
    let reported = 0;
    for (let nth = 1; clean === 0; nth += 3)
      await Promise.all(
        [nth, nth + 1, nth + 2].map(async (n) => {
          const folder = join(shim.folder, `faulty-${n}`);
          const { acknowledged, errors, runId } = await withFault(folder, n);
          if (errors > 0) reported++;
          if (acknowledged.length === 6 && errors === 0 && n > 20) clean++;
          const store = await openRunStore({ storage: "file", folder });
          for (const nodeId of acknowledged) {
            if (nodeId === "n0") continue; // deleted by the script
            const { state } = await store.load(runId, nodeId);
            const text = Buffer.from(state).toString();
            expect(text, `${nodeId} after fault ${n}`).toBe(
              nodeId === "first" ? "first" : `${nodeId[1]}:${"x".repeat(Number(nodeId[1]) * 700)}`,
            );
          }
          // One fault fails one call; the calls after it succeed.
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
