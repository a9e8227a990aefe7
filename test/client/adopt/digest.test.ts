import { describe, expect, it } from "vitest";
import { checkpointId, isAdopted, isNoteSource, noteSource } from "../../../src/client/adopt/adopted-id.ts";
import { checkpointRecord } from "../../../src/client/adopt/checkpoint-record.ts";
import { findDecisions } from "../../../src/client/adopt/find-decisions.ts";
import { digestOf, type SessionEntry } from "../../../src/client/adopt/session-digest.ts";
import { redactor, redactSecrets } from "../../../src/text/redact.ts";

const NOW = "2026-11-17T00:00:00.000Z";
const request = (text: string): SessionEntry => ({ type: "request", text });
const answer = (text: string): SessionEntry => ({ type: "answer", text });
const token = `ghp_${"a1B2c3D4".repeat(5).slice(0, 36)}`;

describe("the digest of a session", () => {
  it("has the first goal, the last requests, the last state, files by recency, branch and times", () => {
    const digest = digestOf(
      [
        { type: "time", at: "2026-01-02T00:00:00.000Z" },
        { type: "about", folder: "/p", branch: "main", version: "1" },
        request("Goal"),
        { type: "file", path: "/p/a.ts" },
        { type: "file", path: "b.ts" },
        { type: "file", path: "./a.ts" },
        ...["r1", "r2", "r2", "r3", "r4", "r5"].map(request),
        answer("first"),
        answer("last"),
        { type: "about", folder: "/other", branch: "feature", version: "2" },
        { type: "time", at: "2026-01-01T00:00:00.000Z" },
        { type: "time", at: "2026-01-03T00:00:00.000Z" },
      ],
      redactSecrets,
    );
    expect(digest).toEqual({
      ...{ folder: "/p", branch: "feature", version: "2", goal: "Goal", requests: ["r2", "r3", "r4", "r5"], lastState: "last" },
      ...{ files: ["/p/b.ts", "/p/a.ts"], fileCount: 2, decisions: [] },
      ...{ startedAt: "2026-01-01T00:00:00.000Z", endedAt: "2026-01-03T00:00:00.000Z" },
    });
  });

  it("keeps memory bounded for a session of any length", () => {
    const entries = function* (): Generator<SessionEntry> {
      for (let index = 0; index < 20_000; index++) {
        yield request(`request ${index} ${"x".repeat(200)}`);
        yield { type: "file", path: `/p/${index}` };
        yield answer(`We decided to use option ${index} for the parser.`);
      }
    };
    const { requests, files, fileCount, decisions } = digestOf(entries(), redactSecrets);
    expect([requests.length, files.length, fileCount, decisions.length]).toEqual([4, 40, 10_000, 12]);
    expect(decisions.at(-1)).toContain("19999");
  });
});

describe("decisions", () => {
  it.each([
    ["We decided to use SQLite. It is small.", ["We decided to use SQLite."]],
    ["- **Decision:** keep the old parser until March", ["Decision: keep the old parser until March"]],
    ["From now on, every commit has a test! Fine.", ["From now on, every commit has a test!"]],
    ["The root cause was a missing index on created_at.", ["The root cause was a missing index on created_at."]],
    ["```\n// we decided to use this\n```\nNothing here.", []],
    ["I read three files and ran the tests.", []],
    ["decided to", []],
  ])("of %j are %j", (text, expected) => expect(findDecisions(text, redactSecrets)).toEqual(expected));

  it("contain no secret, even one that a sentence would cut", () => {
    const found = findDecisions(`We decided to use the token ${token}. It expires.`, redactSecrets);
    expect(found.join()).not.toContain(token.slice(0, 12));
  });

  it.each(["decided to ".repeat(9_000), "we will use".repeat(9_000), "#".repeat(100_000), "- ".repeat(50_000), "```\n".repeat(25_000)])(
    "are found in linear time in hostile text",
    (text) => expect(findDecisions(text, redactSecrets).length).toBeLessThan(2_001),
  );
});

describe("the checkpoint of a session", () => {
  const digest = digestOf(
    [
      { type: "about", folder: "/p", branch: "main", version: "2.1" },
      { type: "time", at: "2026-01-01T00:00:00.000Z" },
      { type: "time", at: "2026-01-01T01:00:00.000Z" },
      request(`Deploy with ${token}\nand then rest`),
      { type: "file", path: "/p/src/a.ts" },
      { type: "file", path: "/elsewhere/b.ts" },
      answer("We decided to deploy on Monday instead."),
    ],
    redactSecrets,
  );
  const record = checkpointRecord("codex", { type: "session", sessionId: "s1", digest }, { now: NOW, redact: redactSecrets })!;

  it("has the session's own times, origin, relative paths, and no secret", () => {
    expect(record).toMatchObject({
      id: checkpointId("codex", "s1"),
      summary: "Deploy with [redacted:github-token] and then rest",
      tags: ["adopted", "codex"],
      created_at: "2026-01-01T01:00:00.000Z",
      updated_at: "2026-01-01T01:00:00.000Z",
      context: { adopted_from: "codex", adopted_id: "s1", branch: "main", tool_version: "2.1", started_at: "2026-01-01T00:00:00.000Z" },
    });
    expect(record.description).toContain("Files written:\n- src/a.ts\n- /elsewhere/b.ts");
    expect(record.description).toContain("Decisions:\n- We decided to deploy on Monday instead.");
    expect(JSON.stringify(record)).not.toContain(token);
  });

  it("keeps values that redaction.allow names", () => {
    const redact = redactor({ allow: [token] });
    const session = digestOf([request(`Deploy with ${token}`), answer(`We decided to use ${token} everywhere.`)], redact);
    const { summary, description } = checkpointRecord(
      "codex",
      { type: "session", sessionId: "s2", digest: session },
      { now: NOW, redact },
    )!;
    expect(summary).toBe(`Deploy with ${token}`);
    expect(description).toContain(`Decisions:\n- We decided to use ${token} everywhere.`);
  });

  it("is recognised by its origin, and another checkpoint with the same tag is not", () => {
    expect(isAdopted(record)).toBe(true);
    expect(isAdopted({ ...record, id: "5b8f3f0e-0000-4000-8000-000000000000" })).toBe(false);
    expect(isAdopted({ id: record.id, context: {} })).toBe(false);
  });

  it("is recognised for ids that look like secrets or do not fit", () => {
    for (const sessionId of [
      "ses_e18471a9bffeXiowYW90bv0SJh",
      "67eb043c-4083-4074-b0b5-ae73e59378a3",
      token,
      "x".repeat(500),
      "a b\0c",
      "",
    ]) {
      const adopted = checkpointRecord("opencode", { type: "session", sessionId, digest }, { now: NOW, redact: redactSecrets })!;
      expect(isAdopted(adopted)).toBe(true);
      expect(adopted.context.adopted_id!.length).toBeLessThanOrEqual(100);
    }
  });

  it("is absent without a request, and fits all limits with huge texts", () => {
    expect(
      checkpointRecord(
        "codex",
        { type: "session", sessionId: "s", digest: digestOf([answer("Hello")], redactSecrets) },
        { now: NOW, redact: redactSecrets },
      ),
    ).toBeUndefined();
    expect(
      checkpointRecord(
        "codex",
        { type: "session", sessionId: "s", digest: digestOf([request("\u200b")], redactSecrets) },
        { now: NOW, redact: redactSecrets },
      ),
    ).toBeUndefined();
    const huge = "\ud83d\ude00".repeat(300_000);
    const entries = [request(huge), request(`${huge}2`), answer(huge), { type: "file", path: huge } as const];
    const { summary, description, context } = checkpointRecord(
      "codex",
      { type: "session", sessionId: "s", digest: digestOf(entries, redactSecrets) },
      { now: NOW, redact: redactSecrets },
    )!;
    expect([summary.length <= 500, description.length <= 10_000, summary.isWellFormed(), description.isWellFormed()]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(Object.values(context).every((value) => value.length <= 500)).toBe(true);
  });
});

it("names the source of notes by their path, within the limit of a label", () => {
  expect(noteSource("memory-md", "/p/MEMORY.md")).toBe("adopt:memory-md:/p/MEMORY.md");
  const long = noteSource("memory-md", `/${"x".repeat(300)}`);
  expect(long.length).toBeLessThanOrEqual(200);
  expect(isNoteSource(long)).toBe(true);
  expect(isNoteSource("faq.csv")).toBe(false);
});
