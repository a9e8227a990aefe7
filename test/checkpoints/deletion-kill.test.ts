import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";

const projectPath = "/home/me/deleting";
/** The states that may follow an acknowledged one without an acknowledgement, because the process was killed in between. */
const NEXT = { visible: ["visible", "deleted"], deleted: ["deleted", "visible", "purged"], purged: ["purged"] } as const;

it("keeps every acknowledged deletion of two processes through kill -9, each record once", { timeout: 300_000 }, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-deleter-"));
  try {
    const states = new Map<string, keyof typeof NEXT>();
    for (let round = 0; round < 3; round++) await Promise.all([0, 1].map((seed) => runDeleter(dataDir, `${round}-${seed}`, states)));
    const cairn = await open({ dataDir, embedder: [] });
    const visible = await idsOf((cursor) => cairn.checkpoints.list({ projectPath, limit: 100, cursor }));
    const deleted = await idsOf((cursor) => cairn.checkpoints.list({ projectPath, limit: 100, cursor, deleted: true }));
    await cairn.close();
    expect([...visible].filter((id) => deleted.has(id))).toEqual([]);
    expect(states.size).toBeGreaterThan(20);
    for (const [id, state] of states) {
      const now = visible.has(id) ? "visible" : deleted.has(id) ? "deleted" : "purged";
      expect(NEXT[state], id).toContain(now);
    }
    const { problems, damaged, stale } = await checkFile(join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`));
    expect([problems, damaged, stale]).toEqual([[], [], []]);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

/** Runs a process until it has acknowledged some changes, then kills it. */
async function runDeleter(dataDir: string, seed: string, states: Map<string, keyof typeof NEXT>): Promise<void> {
  const script = new URL("./deleter.mjs", import.meta.url).pathname;
  const child = spawn(process.execPath, [script, dataDir, projectPath, seed], { stdio: ["ignore", "pipe", "inherit"] });
  let acknowledged = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, state } = JSON.parse(line);
    states.set(id, state);
    if (++acknowledged === 25) child.kill("SIGKILL");
  }
}

type Page = { readonly checkpoints: readonly { readonly id: string }[]; readonly nextCursor?: string | undefined };

async function idsOf(list: (cursor: string | undefined) => Promise<Page>): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await list(cursor);
    for (const { id } of page.checkpoints) ids.add(id);
    if (page.nextCursor === undefined) return ids;
    cursor = page.nextCursor;
  }
}
