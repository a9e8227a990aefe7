import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { definitionOf } from "../../src/operations/zod-schema.ts";

export interface SampleSize {
  /** Items of every list. */
  readonly items: number;
  /** Sentences of every long text. */
  readonly sentences: number;
}

/** Makes an output of an operation as a store would return it, with every optional field. */
export function sampleOf(schema: z.ZodType, size: SampleSize, name = ""): unknown {
  const { type, shape, element, innerType, valueType, out, options, entries, getter } = definitionOf(schema);
  if (type === "optional" && OMITTED.has(name)) return undefined;
  if (shape) return Object.fromEntries(Object.entries(shape).map(([key, field]) => [key, sampleOf(field, size, key)]));
  if (element) return Array.from({ length: LISTS_OF_WORDS.has(name) ? 2 : size.items }, () => sampleOf(element, size, name));
  if (valueType) return Object.fromEntries(["branch", "failing_test", "ticket"].map((key) => [key, sampleOf(valueType, size, "short")]));
  const inner = innerType ?? out ?? options?.[0] ?? getter?.();
  if (inner) return sampleOf(inner, size, name);
  if (entries) return Object.values(entries)[0];
  if (type === "boolean") return false;
  if (type === "number" || type === "int") return Number.isInteger(FRACTIONS.has(name) ? 0.5 : 1) ? 42 : 0.712345678;
  return textFor(name, size);
}

/** Absent unless something is wrong, or the caller asks for an explanation. */
const OMITTED = new Set(["weights", "damaged", "note", "warning", "stale", "embedding_pending", "redacted"]);
const LISTS_OF_WORDS = new Set(["tags", "parents", "scopes", "degraded"]);
const FRACTIONS = new Set(["score", "distance", "rank_score", "success_rate"]);

const CODE = "export async function retryWithBackoff(work: () => Promise<void>) {\n  for (let delay = 10; ; delay *= 2) {\n    try {\n";
const PROSE = "The login tests fail on main because the session cookie is set before the redirect; the fix is in the middleware. ";

function textFor(name: string, { sentences }: SampleSize): string {
  if (/(^|_)id$|cursor/.test(name)) return randomUUID();
  if (/_at$|timestamp|_until$/.test(name)) return "2026-11-17T04:10:33.123Z";
  if (/hash|fingerprint|checksum|digest/.test(name)) return randomUUID().repeat(2).replaceAll("-", "").slice(0, 64);
  if (/path|file/.test(name)) return "src/checkpoints/session-cookie.ts";
  if (name === "text") return CODE.repeat(sentences);
  if (/summary|question|reason|message|problem|title/.test(name)) return PROSE.slice(0, 75);
  if (/description|answer|state_json|data_json/.test(name)) return PROSE.repeat(sentences);
  return "session";
}
