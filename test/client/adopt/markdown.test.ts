import { describe, expect, it } from "vitest";
import { markdownNotes } from "../../../src/client/adopt/markdown-notes.ts";
import { readFrontMatter, splitSections } from "../../../src/client/adopt/markdown-sections.ts";
import { noteRecords } from "../../../src/client/adopt/note-records.ts";
import type { NoteItem } from "../../../src/client/adopt/reader.ts";
import { redactSecrets } from "../../../src/text/redact.ts";

const file = { name: "MEMORY.md", modifiedAt: new Date("2026-02-03T04:05:06.000Z") };
const long = "word ".repeat(400);

describe("a Markdown file", () => {
  it("is split at headings of two levels when it is long", () => {
    const body = `Intro.\n# Title\n## Build\n${long}\n### Detail\nx\n\`\`\`sh\n# not a heading\n\`\`\`\n## Empty\n\n## Deploy\ny`;
    expect(splitSections(body, 100).map(({ headings, text }) => [headings.join(" / "), text.length > 1_000 ? "long" : text])).toEqual([
      ["", "Intro."],
      ["Title / Build", "long"],
      ["Title / Deploy", "y"],
    ]);
  });

  it("stays whole when it is short", () => {
    expect(splitSections("# A\nx\n# B\ny\n", 100)).toEqual([{ headings: ["A"], text: "# A\nx\n# B\ny" }]);
    expect(splitSections(" \n", 100)).toEqual([]);
  });

  it("has front matter that is read as text, never as YAML", () => {
    const { fields, body } = readFrontMatter(
      '---\ntitle: "A: b"\ncreated: 2026-01-01\nx: !!js/function >\n  - y\n__proto__: z\n---\nbody\n---\n',
    );
    expect(fields).toMatchObject({ title: "A: b", created: "2026-01-01", x: "!!js/function >" });
    expect(body).toBe("body\n---\n");
    expect(({} as Record<string, unknown>).z).toBeUndefined();
    expect(readFrontMatter("---\nno end").body).toBe("---\nno end");
  });

  it("becomes notes with distinct keys and original times", () => {
    const content = `---\ntitle: Notes\ncreated: 2026-01-01T10:00:00Z\n---\n## A\n${long}\n## A\nagain`;
    const notes = [...markdownNotes(content, file, { folder: "/p", category: "memory" })] as NoteItem[];
    expect(notes.map(({ key, title, folder }) => [key, title, folder])).toEqual([
      ["Notes: A", "Notes: A", "/p"],
      ["Notes: A 2", "Notes: A", "/p"],
    ]);
    expect(notes[0]).toMatchObject({ createdAt: "2026-01-01T10:00:00.000Z", updatedAt: "2026-02-03T04:05:06.000Z" });
  });
});

describe("a note", () => {
  const note: NoteItem = { type: "note", key: "k", title: "T", text: "x", category: "c", createdAt: "2026-01-01T00:00:00.000Z" };

  it("becomes one knowledge record with its times", () => {
    expect(noteRecords("memory-md", "/f", note, redactSecrets)).toMatchObject([
      { kind: "skill", category: "c", subcategory: "memory-md", question: "T", answer: "x", created_at: note.createdAt },
    ]);
  });

  it("is divided into numbered records when it exceeds the limit, and redacted before", () => {
    const secret = `ghp_${"a1B2c3D4".repeat(5).slice(0, 36)}`;
    const text = `${"line of text\n".repeat(1_450)}${secret}\n${"more\n".repeat(5_000)}`;
    const records = noteRecords("memory-md", "/f", { ...note, text }, redactSecrets);
    expect(records.length).toBe(3);
    expect(records.map(({ question }) => question)).toEqual(["T", "T (part 2)", "T (part 3)"]);
    expect(new Set(records.map(({ id }) => id)).size).toBe(3);
    expect(records.every(({ answer }) => answer.length <= 20_000 && !answer.includes(secret))).toBe(true);
  });

  it("without visible text is left out", () =>
    expect(noteRecords("memory-md", "/f", { ...note, text: " \n\u200b" }, redactSecrets)).toEqual([]));
});
