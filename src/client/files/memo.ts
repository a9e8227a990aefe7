import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import type { SkipReason, WalkedFile } from "./walk.ts";
import { writeWhole } from "./write-file.ts";

/** What a file was when it was last read: its hash, or why it is none for the index. */
export type Remembered = { readonly hash: string } | { readonly skip: SkipReason };

type Look = Pick<WalkedFile, "path" | "sizeBytes" | "mtimeMs" | "ctimeMs">;

/**
 * Remembers what files were, so that one whose size and times have not changed need not be read again. It says nothing about
 * the index: what is in there, the index is asked every time.
 */
export interface Memo {
  /** What the file was, if it still looks as it did then. */
  of(file: Look): Remembered | undefined;
  /** `readAt`: when the reading began. */
  set(file: Look, was: Remembered, readAt: number): void;
  /** All paths it knows. */
  paths(): Iterable<string>;
  /** Forgets every path that is not among these. */
  keep(paths: ReadonlySet<string>): void;
  /** Writes it down, if there is something new in it. */
  save(): Promise<void>;
}

/**
 * A file that changes twice within the resolution of its clock looks the same after the second change. So one that changed just
 * before it was read is read again the next time. Some network file systems count in seconds.
 */
const TOO_FRESH_MS = 2_000;
/** Bytes of a memo: 200,000 files with long paths. */
const MEMO_BYTES = 256 * 1024 * 1024;
/** A time that no file has. */
const NEVER = -1;

const MemoFile = z.object({
  version: z.literal(1),
  root: z.string(),
  /** path, size, mtime, ctime, hash or reason */
  files: z.array(z.tuple([z.string(), z.number(), z.number(), z.number(), z.string()])),
});

interface Entry {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly was: string;
}

/** A memo that cannot be read is an empty one: everything is read again, and nothing is lost but time. */
export async function openMemo(path: string, root: string): Promise<Memo> {
  const entries = new Map<string, Entry>();
  const stored = await readMemo(path);
  for (const [file, sizeBytes, mtimeMs, ctimeMs, was] of stored?.root === root ? stored.files : [])
    entries.set(file, { sizeBytes, mtimeMs, ctimeMs, was });
  let changed = false;

  return {
    of({ path: file, sizeBytes, mtimeMs, ctimeMs }) {
      const entry = entries.get(file);
      if (!entry || entry.sizeBytes !== sizeBytes || entry.mtimeMs !== mtimeMs || entry.ctimeMs !== ctimeMs) return undefined;
      return HASH.test(entry.was) ? { hash: entry.was } : { skip: entry.was as SkipReason };
    },
    set({ path: file, sizeBytes, mtimeMs, ctimeMs }, was, readAt) {
      changed = true;
      const tooFresh = Math.max(mtimeMs, ctimeMs) > readAt - TOO_FRESH_MS;
      entries.set(file, { sizeBytes, mtimeMs: tooFresh ? NEVER : mtimeMs, ctimeMs, was: "hash" in was ? was.hash : was.skip });
    },
    paths: () => entries.keys(),
    keep(paths) {
      for (const file of entries.keys())
        if (!paths.has(file)) {
          entries.delete(file);
          changed = true;
        }
    },
    async save() {
      if (!changed) return;
      changed = false;
      const files = [...entries].map(([file, { sizeBytes, mtimeMs, ctimeMs, was }]) => [file, sizeBytes, mtimeMs, ctimeMs, was]);
      await writeWhole(path, JSON.stringify({ version: 1, root, files }));
    },
  };
}

const HASH = /^[0-9a-f]{64}$/;

async function readMemo(path: string): Promise<z.output<typeof MemoFile> | undefined> {
  try {
    return MemoFile.parse(JSON.parse(readOwnFile(path, MEMO_BYTES).toString("utf8")));
  } catch {
    return undefined; // absent, torn by a full disk, or of another version
  }
}
