import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns up to `limit` different sentences from the documentation of installed packages, in a deterministic order. */
export function packageSentences(folder: string, limit: number): string[] {
  const sentences = new Set<string>();
  for (const file of documents(folder, /\.(md|d\.ts|d\.mts)$/))
    for (const piece of readFileSync(file, "utf8").split(/\n|(?<=\.)\s/)) {
      const sentence = piece.replace(/^[\s*#>\-|/]+/, "").trim();
      if (sentence.length >= 35 && sentence.length <= 140 && /[a-z]{3} [a-z]{2,} /.test(sentence)) sentences.add(sentence);
    }
  return mixed([...sentences], limit);
}

/** Returns up to `limit` different excerpts of fifteen lines from their code. */
export function packageCode(folder: string, limit: number): string[] {
  const pieces = new Map<string, string>();
  for (const file of documents(folder, /\.(ts|mts|js|mjs|cjs)$/)) {
    const lines = readFileSync(file, "utf8").split("\n");
    for (let from = 0; from < Math.min(lines.length, 1_500); from += 15) {
      const piece = lines.slice(from, from + 15).join("\n");
      if (piece.length >= 150 && piece.length <= 2_500) pieces.set(piece.slice(0, 200), piece);
    }
  }
  return mixed([...pieces.values()], limit);
}

/** A stride that shares no factor with the length visits each once, far from its neighbours. */
function mixed(all: readonly string[], limit: number): string[] {
  const step = coprime(Math.floor(all.length * 0.618), all.length);
  return Array.from({ length: Math.min(limit, all.length) }, (_, i) => all[(i * step) % all.length]!);
}

function* documents(folder: string, name: RegExp, depth = 0): Generator<string> {
  if (depth > 7) return;
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* documents(path, name, depth + 1);
    else if (name.test(entry.name)) yield path;
  }
}

function coprime(near: number, to: number): number {
  let candidate = Math.max(1, near);
  while (greatestCommonDivisor(candidate, to) !== 1) candidate++;
  return candidate;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
