import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { postgresWanted, testDatabase } from "../setup/postgres.ts";

const soak = process.env.CAIRN_SOAK === "1";
const PROCESSES = 8;
const EACH = soak ? 1_000 : 50;

it.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])(
  "loses and doubles no feedback of eight processes at once, on %s",
  { timeout: soak ? 1_800_000 : 900_000 },
  async (kind) => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-feedback-"));
    const database = kind === "postgres" ? await testDatabase() : undefined;
    const storage = database?.url ?? kind;
    const cairn = await open({ storage, dataDir, embedder: { kind: "none" } });
    await cairn.knowledge.save({ scope: "shared", id: "one", kind: "faq", question: "q", answer: "a" });
    const script = join(import.meta.dirname, "feedback-process.mjs");
    const children = Array.from({ length: PROCESSES }, () =>
      spawn(process.execPath, [script, storage, dataDir, String(EACH)], { stdio: "inherit" }),
    );
    // An edit in between keeps the counts.
    const ended = Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
    await cairn.knowledge.update({ scope: "shared", id: "one", answer: "better" });
    expect(await ended).toEqual(children.map(() => 0));
    expect(await cairn.knowledge.get({ scope: "shared", id: "one" })).toMatchObject({
      answer: "better",
      uses: PROCESSES * EACH,
      successes: (PROCESSES * EACH) / 2,
    });
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  },
);
