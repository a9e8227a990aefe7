import type { CodeFilter, CodeStore } from "../ports/code-store.ts";
import { type SplitQuestion, type StackFrame, splitQuestion } from "../text/split-question.ts";
import { type CodeQuery, nameParts, readQuery } from "./query.ts";

const MAX_NAMES = 16;
/** Characters of a long question that are embedded and matched: more of it dilutes both rankings. */
const SEARCHED_CHARS = 1_000;
const PROSE_CHARS = 300;
const SEARCHED_NAMES = 12;

/** Returns the text that is embedded and matched: the title first, then messages and names, and the beginning of the prose. */
export function questionText(question: string): string {
  const { title, prose, identifiers, errors, frames } = splitQuestion(question);
  const symbols = frames.flatMap(({ symbol }) => symbol ?? []);
  const names = [...new Set([...identifiers, ...symbols])].slice(0, SEARCHED_NAMES);
  const text = [title, ...errors.slice(0, 2).filter((error) => error !== title), names.join(" "), prose.slice(0, PROSE_CHARS)];
  return text.filter(Boolean).join("\n").slice(0, SEARCHED_CHARS) || question.slice(0, SEARCHED_CHARS);
}

/** Reads a long question for the ranking: words of the title, names of the whole text, and the first message as pasted text. */
export function readLongQuery(question: string): CodeQuery & { readonly split: SplitQuestion } {
  const split = splitQuestion(question);
  const { title, identifiers, frames, errors } = split;
  const ofTitle = readQuery(title);
  const names = [...identifiers, ...frames.flatMap(({ symbol }) => symbol ?? [])].map(nameParts);
  const [error] = errors;
  return {
    ...ofTitle,
    names: [...new Set([...ofTitle.names, ...names.map((parts) => parts.at(-1)!)])].filter(Boolean).slice(0, MAX_NAMES),
    owners: new Map([...names.flatMap((parts) => (parts.length > 1 ? [[parts.at(-1)!, parts.at(-2)!] as const] : [])), ...ofTitle.owners]),
    bare: false,
    wordSequence: error === undefined ? ofTitle.wordSequence : readQuery(error).wordSequence,
    split,
  };
}

/** How much the places of a question raise the chunks there, added to scores of about 1. */
const FRAME_LINE = 0.9;
const FRAME_FILE = 0.5;
const NAMED_FILE = 0.85;
/** The innermost frame counts most. */
const OUTER_FRAME = 0.8;
/** Frames and paths that are resolved. */
const MAX_PLACES = 12;

/** Boosts by chunk and by file, for the places that a question names. */
export interface PlaceBoosts {
  readonly chunks: ReadonlyMap<string, number>;
  readonly files: ReadonlyMap<string, number>;
}

/** Finds the indexed files of the stack frames and paths of a question, and the chunks at the frames' lines. */
export async function findPlaces(store: CodeStore, { frames, paths }: SplitQuestion, filter: CodeFilter): Promise<PlaceBoosts> {
  const chunks = new Map<string, number>();
  const files = new Map<string, number>();
  if (frames.length + paths.length === 0) return { chunks, files };
  const { kinds: _, ...fileFilter } = filter;
  const resolve = pathResolver(await store.pathsWith([], fileFilter));
  const known = frames.flatMap((frame) => {
    const [path] = resolve(frame.path);
    return path === undefined ? [] : [{ ...frame, path }];
  });
  for (const [depth, { path, line }] of known.slice(0, MAX_PLACES).entries()) {
    raise(files, path, FRAME_FILE * OUTER_FRAME ** depth);
    if (line === undefined) continue;
    for (const { id } of await store.chunksOf(path, [line])) raise(chunks, id, FRAME_LINE * OUTER_FRAME ** depth);
  }
  for (const path of paths.slice(0, MAX_PLACES).flatMap(resolve)) {
    if (!files.has(path)) for (const { id } of (await store.chunksOf(path, [1])).slice(0, 1)) raise(chunks, id, 0);
    raise(files, path, NAMED_FILE);
  }
  return { chunks, files };
}

function raise(boosts: Map<string, number>, key: string, by: number): void {
  boosts.set(key, Math.max(boosts.get(key) ?? 0, by));
}

/**
 * Returns a function from a path as it was written to the indexed path that it means: the path with the most equal names at its end. A
 * bare file name that several folders have means none of them.
 */
export function pathResolver(indexed: readonly string[]): (written: StackFrame["path"]) => string[] {
  const byName = new Map<string, string[]>();
  for (const path of indexed) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const same = byName.get(name);
    if (same) same.push(path);
    else byName.set(name, [path]);
  }
  return (written) => {
    const names = written.split("/").reverse();
    let best: string[] = [];
    let bestShared = 0;
    for (const path of byName.get(names[0]!) ?? []) {
      const own = path.split("/").reverse();
      let shared = 0;
      while (shared < own.length && own[shared] === names[shared]) shared++;
      if (shared > bestShared) best = [];
      if (shared >= bestShared) best.push(path);
      bestShared = Math.max(bestShared, shared);
    }
    return best.length === 1 ? best : [];
  };
}
