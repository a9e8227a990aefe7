import { randomUUID } from "node:crypto";
import type { Checkpoint } from "../model/checkpoint.ts";
import { LIMITS } from "../model/limits.ts";

const AT = "2026-01-02T03:04:05.678Z";

/** Returns a new project for each case, so that cases can share one storage. */
export function freshProject(): string {
  return `/contract/${randomUUID()}`;
}

export function sampleCheckpoint(projectPath: string, changes: Partial<Checkpoint> = {}): Checkpoint {
  return {
    id: randomUUID(),
    projectPath,
    summary: "Parser done, lexer next",
    description: "Two tests are red.",
    context: { branch: "main" },
    tags: ["parser"],
    anchors: [{ kind: "file", value: "src/парсер.ts", hash: "0".repeat(64), generation: 3 }],
    supersededBy: "",
    tokenCount: 12,
    createdAt: AT,
    updatedAt: AT,
    createdOrder: changes.createdAt ?? AT,
    updatedOrder: changes.updatedAt ?? AT,
    revision: 1,
    ...changes,
  };
}

/** Texts that expose escaping and encoding bugs: quotes, patterns, commas, escapes, scripts, emoji with joiners, unusual white space. */
export const AWKWARD_TEXTS: readonly string[] = [
  "'; DROP TABLE checkpoints; --",
  '"double" and `back`',
  "100%_done\\n",
  "{a,b}",
  "NULL",
  "a,b;c|d",
  "$1 ? :name @x",
  "naïve Ünïcödé",
  "日本語のタグ",
  "👩‍👩‍👧‍👦🏳️‍🌈",
  "\u202eright to left",
  "\ttab\nline\r\nline",
  " spaces around ",
  "\u0001\u001f control",
  "\ufeff\uffff\u{10ffff}",
];

/** Returns a record at the limits, in characters with the most bytes. */
export function largestCheckpoint(projectPath: string): Checkpoint {
  const fill = (chars: number, start = "") => (start + "漢".repeat(chars)).slice(0, chars);
  return sampleCheckpoint(projectPath, {
    id: "i".repeat(LIMITS.idChars),
    summary: fill(LIMITS.summaryChars),
    description: fill(LIMITS.descriptionChars),
    context: Object.fromEntries(
      Array.from({ length: LIMITS.contextPairs }, (_, index) => [
        fill(LIMITS.contextKeyChars, `${index} `),
        fill(LIMITS.contextValueChars),
      ]),
    ),
    tags: Array.from({ length: LIMITS.tags }, (_, index) => fill(LIMITS.tagChars, `${index} `)),
    tokenCount: 2_000_000_000,
  });
}
