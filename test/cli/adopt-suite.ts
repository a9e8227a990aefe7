import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claudeLines, sampleSession, writeClaude, writeCodex, writeGemini, writeOpencode } from "../../bench/adopt/sessions.ts";
import { EXIT_ATTENTION } from "../../src/cli/exit-code.ts";
import { photograph, writeClaudeMem, writeFile } from "../client/adopt/machine.ts";
import { stage } from "./stage.ts";

const token = `ghp_${"a1B2c3D4".repeat(5).slice(0, 36)}`;

/** What `cairn adopt` must do on every storage, and through a server. `connect` returns the flags that select it. */
export function adoptSuite(name: string, connect: (folder: string) => Promise<{ flags: string[]; close(): Promise<void> }>): void {
  describe(`cairn adopt on ${name}`, () => {
    const { cairn, home, project, folder, clear } = stage();
    const other = join(folder, "other");
    let target: Awaited<ReturnType<typeof connect>>;
    const run = (...argv: string[]) => cairn([...argv, ...target.flags]);
    const json = async (...argv: string[]) => {
      const { stdout, stderr } = await run(...argv, "--json");
      expect(stderr).toBe("");
      return JSON.parse(stdout);
    };
    const list = async (path: string) => (await json("checkpoint", "list", "--project", path)).checkpoints;

    beforeAll(async () => {
      mkdirSync(join(other, ".git"), { recursive: true });
      target = await connect(folder);
      const secret = { ...sampleSession(1, project), answers: ["a", `Log in with ${token} now`, "The last state"] };
      writeClaude(home, secret);
      writeClaude(home, sampleSession(2, join(project, "src", "deep")));
      writeCodex(home, sampleSession(3, other));
      writeGemini(home, sampleSession(4, other));
      await writeOpencode(home, [sampleSession(5, join(folder, "gone"))]);
      await writeClaudeMem(home, { project: "unknown", sessionId: "s", title: "A deadlock" });
      writeFile(join(project, "MEMORY.md"), `# Build\nRun make with ${token}.\n`);
      writeFile(join(home, "basic-memory", "note.md"), "---\ntitle: Wine\ncreated: 2025-05-05\n---\nRed with cheese.\n");
      await run("checkpoint", "save", "My own", "--tags", "adopted");
      await run("knowledge", "save", "Own question", "Own answer", "--scope", "shared");
    });
    afterAll(async () => {
      await target.close();
      clear();
    });

    it("reports in a dry run and changes nothing", async () => {
      const before = photograph(home);
      const report = await json("adopt", "--dry-run");
      expect(report).toMatchObject({ dry_run: true, sessions: 5, notes: 4, imported: 9, problems: [] });
      expect(await list(project)).toHaveLength(1);
      const after = photograph(home);
      for (const path of Object.keys(after)) if (path.includes(".cairn")) delete after[path];
      for (const path of Object.keys(before)) if (path.includes(".cairn")) delete before[path];
      expect(after).toEqual(before);
    });

    it("imports sessions into the projects of their folders, with their own times and without secrets", async () => {
      const report = await json("adopt");
      expect(report).toMatchObject({ sessions: 5, notes: 4, imported: 9, updated: 0, unchanged: 0, problems: [] });
      expect(report.projects).toEqual([join(folder, "gone"), other, project].sort());
      const [own, second, first] = await list(project);
      expect(own.summary).toBe("My own");
      expect(first).toMatchObject({
        summary: "Fix the 1th flaky test of the importer",
        created_at: "2026-01-01T01:11:00.000Z",
        tags: ["adopted", "claude-code"],
        context: { adopted_from: "claude-code", branch: "fix/importer-1", started_at: "2026-01-01T01:00:00.000Z" },
      });
      expect(second.description).toContain("Decisions:");
      expect((await list(other)).map(({ tags }: { tags: string[] }) => tags[1]).sort()).toEqual(["codex", "gemini"]);
      const { knowledge } = await json("knowledge", "list", "--scope", "shared");
      expect(knowledge.map(({ question }: { question: string }) => question)).toEqual([
        "Own question",
        "Summary of A deadlock",
        "A deadlock",
        "Wine",
      ]);
      expect(knowledge.at(-1)).toMatchObject({ created_at: "2025-05-05T00:00:00.000Z" });
      const all = JSON.stringify([await list(project), (await json("knowledge", "list")).knowledge]);
      expect(all).not.toContain(token);
      expect(all).toContain("Run make with [redacted:github-token]");
    });

    it("imports nothing the second time", async () => {
      expect(await json("adopt")).toMatchObject({ imported: 0, updated: 0, unchanged: 9, sessions: 5, notes: 4 });
    });

    it("replaces the checkpoint of a session that continued, and the notes of a file that was edited", async () => {
      const session = sampleSession(1, project);
      const continued = { ...session, startMs: session.startMs + 24 * 60 * 60_000, answers: ["Later", "state", "Now it is really done."] };
      appendFileSync(
        join(home, ".claude", "projects", project.replace(/[^a-zA-Z0-9]/g, "-"), `${session.id}.jsonl`),
        `${claudeLines(continued).slice(1).join("\n")}\n`,
      );
      writeFile(join(project, "MEMORY.md"), "# Deploy\nRun make deploy.\n");
      expect(await json("adopt")).toMatchObject({ imported: 1, updated: 1, unchanged: 7 });
      const checkpoints = await list(project);
      expect(checkpoints).toHaveLength(3);
      expect(checkpoints[1]).toMatchObject({ created_at: "2026-01-02T01:11:00.000Z", description: expect.stringContaining("really done") });
      const { knowledge } = await json("knowledge", "list");
      expect(knowledge.map(({ answer }: { answer: string }) => answer)).toEqual(["Run make deploy."]);
    });

    it("keeps a checkpoint that the user has edited", async () => {
      const [, edited] = await list(project);
      await run("checkpoint", "update", edited.id, "--summary", "Edited by hand");
      const session = sampleSession(1, project);
      const continued = { ...session, startMs: session.startMs + 48 * 60 * 60_000 };
      appendFileSync(
        join(home, ".claude", "projects", project.replace(/[^a-zA-Z0-9]/g, "-"), `${session.id}.jsonl`),
        `${claudeLines(continued).slice(1).join("\n")}\n`,
      );
      expect(await json("adopt")).toMatchObject({ imported: 0, updated: 0 });
      expect((await list(project)).map(({ summary }: { summary: string }) => summary)).toContain("Edited by hand");
    });

    it("reports an unknown format and imports the rest", async () => {
      const path = writeFile(join(home, ".codex", "sessions", "2026", "01", "01", "rollout-x.jsonl"), '{"v":99}\n');
      writeCodex(home, sampleSession(6, other));
      const { stdout, code } = await run("adopt", "--from", "codex");
      expect(code).toBe(EXIT_ATTENTION);
      expect(stdout).toMatch(/rollout-x\.jsonl\n {4}has an unknown format; known is that of Codex/);
      expect(stdout).toContain("1 imported");
      writeFile(path, "");
    });

    it("imports again the records that are gone from the storage, and no others", async () => {
      for (const { id } of await list(other)) await run("checkpoint", "delete", id, "--project", other);
      expect(await json("adopt")).toMatchObject({ imported: 3, updated: 0 });
    });

    it("removes exactly what it imported, and can start again", async () => {
      expect(await json("adopt", "--remove", "--dry-run")).toMatchObject({ checkpoints: 6, notes: 4 });
      expect(await json("adopt", "--remove")).toMatchObject({ dry_run: false, checkpoints: 6, notes: 4, projects: 3, not_examined: 0 });
      expect((await list(project)).map(({ summary }: { summary: string }) => summary)).toEqual(["My own"]);
      expect((await json("knowledge", "list", "--scope", "shared")).knowledge).toMatchObject([{ question: "Own question" }]);
      expect(await json("adopt", "--remove")).toMatchObject({ checkpoints: 0, notes: 0 });
      expect(await json("adopt")).toMatchObject({ imported: 10, updated: 0 });
    });
  });
}
