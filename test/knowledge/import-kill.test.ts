import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { postgresWanted, testDatabase } from "../setup/postgres.ts";

const soak = process.env.CAIRN_SOAK === "1";

it.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])(
  "leaves the whole old file or the whole new one when an import is killed, on %s",
  { timeout: soak ? 1_800_000 : 900_000 },
  async (kind) => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-import-kill-"));
    const database = kind === "postgres" ? await testDatabase() : undefined;
    const storage = database?.url ?? kind;
    for (let round = 0; round < (soak ? 60 : 4); round++) {
      const child = spawn(process.execPath, [join(import.meta.dirname, "import-process.mjs"), storage, dataDir], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const exited = once(child, "exit");
      await once(createInterface(child.stdout), "line");
      await sleep(Math.random() * 300);
      child.kill("SIGKILL");
      await exited;

      const cairn = await open({ storage, dataDir, embedder: { kind: "none" } });
      const { records, total } = await cairn.knowledge.list({ scope: "shared", limit: 100 });
      expect(total).toBe(40);
      expect(new Set(records.map(({ answer }) => answer)).size).toBe(1);
      expect(records.filter(({ id }) => id.startsWith("odd")).length).toBe(records[0]!.answer === "odd" ? 10 : 0);
      expect(await cairn.knowledge.readiness()).toEqual({ records: 40, vectors: 40, ready: true });
      await cairn.close();
    }
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  },
);
