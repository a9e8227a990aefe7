import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  claudeLines,
  geminiLines,
  sampleSession,
  writeClaude,
  writeCodex,
  writeGemini,
  writeOpencode,
} from "../../../bench/adopt/sessions.ts";
import { ADOPT_TOOLS } from "../../../src/client/adopt/reader.ts";
import { claudeEntries } from "../../../src/client/adopt/readers/claude-code.ts";
import { codexEntries } from "../../../src/client/adopt/readers/codex.ts";
import { geminiEntries } from "../../../src/client/adopt/readers/gemini.ts";
import { READERS } from "../../../src/client/adopt/readers.ts";
import { digestOf } from "../../../src/client/adopt/session-digest.ts";
import { loadEngine } from "../../../src/stores/sqlite/driver/engine.ts";
import { redactSecrets } from "../../../src/text/redact.ts";
import { type Machine, machine, readAll, writeClaudeMem, writeFile } from "./machine.ts";
import { type Example, readerContract } from "./reader-contract.ts";

const session = ({ project }: Machine) => sampleSession(7, project, 3_000);
const sessionItem = (host: Machine, prefix = "", more: object = {}) => [
  {
    type: "session",
    sessionId: `${prefix}${session(host).id}`,
    digest: {
      folder: host.project,
      goal: "Fix the 7th flaky test of the importer",
      requests: ["Now update the changelog", "Also check the documentation"],
      lastState: "Done: the importer closes its file, test 7 passes ten times.",
      fileCount: 3,
      decisions: ["We decided to close it in a finally block instead of a callback (7)."],
      startedAt: "2026-01-01T07:00:00.000Z",
      ...more,
    },
  },
];
const NOTE = "# Build\nRun make.\n";

const EXAMPLES: readonly Example[] = [
  {
    reader: READERS["claude-code"],
    write: async (host) => writeClaude(host.home, session(host)),
    items: (host) => sessionItem(host, "", { branch: "fix/importer-7", version: "2.1.197" }),
    hasFormat: true,
  },
  {
    reader: READERS.codex,
    write: async (host) => writeCodex(host.home, session(host)),
    items: (host) => sessionItem(host, "", { branch: "fix/importer-7", version: "0.166.0" }),
    hasFormat: true,
  },
  {
    reader: READERS.gemini,
    write: async (host) => writeGemini(host.home, session(host)),
    items: (host) =>
      sessionItem(host, "session-2026-01-01T07-00-").map((item) => ({
        ...item,
        sessionId: `session-2026-01-01T07-00-${session(host).id.slice(0, 8)}`,
      })),
    hasFormat: true,
  },
  {
    reader: READERS.opencode,
    write: (host) => writeOpencode(host.home, [session(host)]),
    items: (host) => sessionItem(host, "ses_", { version: "1.18.34" }),
    hasFormat: true,
  },
  {
    reader: READERS["claude-mem"],
    write: ({ home }) => writeClaudeMem(home, { project: "app", sessionId: "s1", title: "Deadlock fixed" }),
    items: ({ project }) => [
      {
        ...{ type: "note", key: "observation 1", folder: project, title: "Deadlock fixed", category: "bugfix" },
        ...{ text: "Sub\n\nIt waited for a lock.\n\n- fact one\n- fact two", createdAt: "2026-01-05T00:00:00.000Z" },
      },
      { type: "note", key: "summary 1", folder: project, title: "Summary of Deadlock fixed", text: "Learned: L\n\nCompleted: C" },
    ],
    hasFormat: true,
  },
  {
    reader: READERS["basic-memory"],
    write: async ({ home }) =>
      writeFile(join(home, "basic-memory", "notes", "Build.md"), `---\ntitle: How to build\ncreated: 2026-01-01\n---\n${NOTE}`),
    items: () => [
      {
        type: "note",
        folder: undefined,
        title: "How to build: Build",
        text: "Run make.",
        category: "main",
        createdAt: "2026-01-01T00:00:00.000Z",
      },
    ],
    hasFormat: false,
  },
  {
    reader: READERS["memory-md"],
    write: async ({ project }) => writeFile(join(project, "MEMORY.md"), NOTE),
    items: ({ project }) => [{ type: "note", folder: project, title: "MEMORY: Build", text: "Run make." }],
    hasFormat: false,
  },
];

for (const example of EXAMPLES) readerContract(example);

it("has a reader and an example of the contract for every tool", () => {
  expect(EXAMPLES.map(({ reader }) => reader.tool)).toEqual([...ADOPT_TOOLS]);
  expect(Object.entries(READERS).every(([tool, reader]) => reader.tool === tool)).toBe(true);
});

describe("entries", () => {
  const folder = "/p";
  const parse = (lines: readonly string[]) => lines.map((line) => JSON.parse(line));

  it("leave out what Claude Code itself and its subagents said", () => {
    const [line] = parse(claudeLines(sampleSession(1, folder)).slice(1));
    const said = (more: object, content: unknown = "Text") => [...claudeEntries({ ...line, ...more, message: { role: "user", content } })];
    const requests = (entries: object[]) => entries.filter((entry) => (entry as { type: string }).type === "request");
    expect(requests(said({}))).toHaveLength(1);
    for (const more of [{ isSidechain: true }, { isMeta: true }, { isCompactSummary: true }, { type: "system" }])
      expect(said(more)).toEqual([]);
    for (const text of [
      "<command-name>/clear</command-name>",
      "Caveat: The messages below",
      "[Request interrupted by user]",
      "<local-command-stdout></local-command-stdout>",
    ])
      expect(requests(said({}, text))).toEqual([]);
  });

  it("find the files of a patch that Codex applied in a shell", () => {
    const command =
      "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a b.txt\n+x\n*** Update File: c.ts\n*** Move to: d.ts\n*** Delete File: e.ts\n*** End Patch\nEOF";
    const files = (payload: object) => digestOf(codexEntries({ type: "response_item", payload }), redactSecrets).files;
    expect(files({ type: "function_call", name: "exec_command", arguments: JSON.stringify({ cmd: command }) })).toEqual([
      "a b.txt",
      "c.ts",
      "d.ts",
    ]);
    expect(files({ type: "function_call", name: "shell", arguments: JSON.stringify({ command: ["bash", "-lc", command] }) })).toEqual([
      "a b.txt",
      "c.ts",
      "d.ts",
    ]);
    expect(files({ type: "function_call", name: "shell", arguments: "{" })).toEqual([]);
    const change = (status: string) => ({
      type: "FileChange",
      status,
      changes: { "/p/a.ts": { type: "add" }, "/p/b.ts": { type: "delete" } },
    });
    const changed = (status: string) =>
      digestOf(codexEntries({ type: "event_msg", payload: { type: "item_completed", item: change(status) } }), redactSecrets).files;
    expect([changed("completed"), changed("failed")]).toEqual([["/p/a.ts"], []]);
  });

  it("read messages of Gemini that an update repeats", () => {
    const messages = parse(geminiLines(sampleSession(1, folder))).slice(1, 3);
    expect(digestOf(geminiEntries({ $set: { messages } }), redactSecrets)).toMatchObject({
      goal: "Fix the 1th flaky test of the importer",
      fileCount: 1,
    });
  });
});

describe("single readers", () => {
  const withMachine = (run: (host: Machine) => Promise<void>) => async () => {
    const host = machine();
    try {
      await run(host);
    } finally {
      host.clear();
    }
  };

  it(
    "reads a session of Gemini in one JSON document, and reports one whose project is unknown",
    withMachine(async (host) => {
      const [header, ...messages] = geminiLines(session(host)).map((line) => JSON.parse(line));
      const hash = header.projectHash;
      writeFile(join(host.home, ".gemini", "tmp", hash, "chats", "session-1-a.json"), JSON.stringify({ ...header, messages }));
      writeFile(join(host.home, ".gemini", "tmp", "unknown", "chats", "session-2-b.jsonl"), "{}\n");
      const { items } = await readAll(READERS.gemini, host);
      expect(items).toMatchObject([
        { type: "problem", problem: "its project folder is unknown" },
        { type: "session", sessionId: "session-1-a", digest: { folder: host.project, fileCount: 3 } },
      ]);
    }),
  );

  it(
    "leaves out sessions of opencode that have a parent, and reports the earlier layout",
    withMachine(async (host) => {
      const path = await writeOpencode(host.home, [session(host), { ...session(host), id: "child" }]);
      const { DatabaseSync } = await loadEngine();
      const database = new DatabaseSync(path);
      database.exec("UPDATE session SET parent_id = 'x' WHERE id = 'ses_child'");
      database.close();
      expect((await readAll(READERS.opencode, host)).items).toHaveLength(1);
      const other = machine();
      writeFile(join(other.home, ".local", "share", "opencode", "storage", "session", "p", "ses.json"), "{}");
      expect((await readAll(READERS.opencode, other)).items).toMatchObject([{ type: "problem" }]);
      other.clear();
    }),
  );

  it(
    "does not read views and generated columns of a database",
    withMachine(async (host) => {
      const path = await writeOpencode(host.home, [session(host)]);
      const { DatabaseSync } = await loadEngine();
      const database = new DatabaseSync(path);
      database.exec("ALTER TABLE part RENAME TO hidden; CREATE VIEW part AS SELECT * FROM hidden");
      database.close();
      expect((await readAll(READERS.opencode, host)).items).toMatchObject([
        { type: "problem", problem: expect.stringContaining("unknown format") },
      ]);
      const again = new DatabaseSync(path);
      again.exec("DROP VIEW part; CREATE TABLE part (id text, message_id text, data text AS (hex(zeroblob(1000000000))) VIRTUAL)");
      again.close();
      expect((await readAll(READERS.opencode, host)).items).toMatchObject([
        { type: "problem", problem: expect.stringContaining("unknown format") },
      ]);
    }),
  );

  it(
    "finds the project of a claude-mem record by its session, and shares a record of an unknown project",
    withMachine(async (host) => {
      const other = join(host.home, "other", "app");
      writeFile(join(host.home, ".claude.json"), JSON.stringify({ projects: { [other]: {} }, oauthAccount: { token: "x" } }));
      await writeClaudeMem(host.home, { project: "app", sessionId: "unknown", title: "A" });
      await writeClaudeMem(host.home, { project: "app", sessionId: session(host).id, title: "B" });
      writeClaude(host.home, session(host));
      const { items } = await readAll(READERS["claude-mem"], host);
      const places = items.map((item) => item.type === "note" && [item.title, item.folder, item.category]);
      expect(places).toEqual([
        ["A", undefined, "app bugfix"],
        ["B", host.project, "bugfix"],
        ["Summary of A", undefined, "app summary"],
        ["Summary of B", host.project, "summary"],
      ]);
    }),
  );

  it(
    "reads the memory folders of Claude Code, Gemini CLI and Codex, and reports one whose project is unknown",
    withMachine(async (host) => {
      const entry = host.project.replace(/[^a-zA-Z0-9]/g, "-");
      writeFile(join(host.home, ".claude", "projects", entry, "memory", "debugging.md"), NOTE);
      writeFile(join(host.home, ".claude", "projects", "-gone", "memory", "MEMORY.md"), NOTE);
      writeFile(join(host.home, ".codex", "memories", "MEMORY.md"), NOTE);
      writeFile(join(host.home, ".gemini", "tmp", "app", ".project_root"), host.project);
      writeFile(join(host.home, ".gemini", "tmp", "app", "memory", "MEMORY.md"), NOTE);
      const { items } = await readAll(READERS["memory-md"], host);
      expect(items.map((item) => [item.type, item.type === "note" ? item.folder : ""])).toEqual([
        ["problem", ""],
        ["note", host.project],
        ["note", undefined],
        ["note", host.project],
      ]);
    }),
  );

  it(
    "reads the folders of Basic Memory's configuration, but never a whole home directory",
    withMachine(async (host) => {
      const projects = { work: { path: join(host.project, "notes") }, home: host.home, root: "/", relative: "notes" };
      writeFile(join(host.home, ".basic-memory", "config.json"), JSON.stringify({ projects }));
      writeFile(join(host.project, "notes", "a.md"), NOTE);
      writeFile(join(host.project, "notes", ".obsidian", "b.md"), NOTE);
      const { items } = await readAll(READERS["basic-memory"], host);
      expect(items.map((item) => (item.type === "note" ? [item.folder, item.category] : item.type))).toEqual([
        "problem",
        "problem",
        [host.project, "work"],
      ]);
    }),
  );
});
