import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { type Session, sampleSession, writeClaude, writeCodex, writeOpencode } from "../../bench/adopt/sessions.ts";
import { writeFile } from "../client/adopt/machine.ts";
import { processStage } from "../client/processes.ts";
import { counts } from "../faults/processes.ts";
import { killProcess } from "../support/processes.ts";

const s = processStage();
afterAll(() => s.clear());

const KILLS = counts({ short: 3, soak: 20 });
const SESSIONS = counts({ short: 60, soak: 400 });
const PROJECTS = 4;
const OUTPUT_BYTES = 100_000;

it(`imports every session once through ${KILLS} kills with -9`, { timeout: 1_800_000 }, async () => {
  const folders = Array.from({ length: PROJECTS }, (_, index) => join(s.folder, `p${index}`));
  for (const folder of folders) mkdirSync(join(folder, ".git"), { recursive: true });
  const opencode: Session[] = [];
  const writers = [writeClaude, writeCodex, (_home: string, session: Session) => void opencode.push(session)];
  for (let number = 0; number < SESSIONS; number++)
    writers[number % writers.length]!(s.home, sampleSession(number, folders[number % PROJECTS]!, OUTPUT_BYTES));
  await writeOpencode(s.home, opencode);
  for (let number = 0; number < 20; number++) writeFile(join(s.home, "basic-memory", `note-${number}.md`), `Note ${number}.\n`);

  for (let kill = 0; kill < KILLS; kill++) {
    const child = s.start(["adopt", "--json"]);
    // From the loading of modules to the end of a whole run.
    await sleep(300 + Math.random() * 2_500);
    await killProcess(child);
  }
  const { code, stdout } = await s.run("adopt", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ sessions: SESSIONS, notes: 20, problems: [] });

  const summaries: string[] = [];
  for (const folder of folders) {
    const { stdout: exported } = await s.run("checkpoint", "export", "--project", folder);
    const [, ...records] = exported
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    summaries.push(...records.map(({ summary }) => summary));
  }
  expect(new Set(summaries).size).toBe(SESSIONS);
  expect(summaries).toHaveLength(SESSIONS);
  expect(JSON.parse((await s.run("knowledge", "list", "--scope", "shared", "--limit", "100", "--json")).stdout).total).toBe(20);
  expect(JSON.parse((await s.run("adopt", "--json")).stdout)).toMatchObject({ imported: 0, updated: 0, unchanged: SESSIONS + 20 });
  expect(readdirSync(join(s.home, ".cairn", "adopted"))).not.toContain("copies");
});
