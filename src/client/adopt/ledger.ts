import { constants } from "node:fs";
import { type FileHandle, mkdir, open, truncate } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { boundedLines } from "../../files/bounded-lines.ts";
import { framedHash } from "../../model/ids.ts";

/** What was adopted from a unit. The record in the target is the truth; the ledger only saves reading unchanged files again. */
export interface LedgerEntry {
  readonly path: string;
  readonly fingerprint: string;
  readonly sessions: number;
  readonly notes: number;
  /** Places of its records; null for shared knowledge. */
  readonly places: readonly (string | null)[];
}

export interface Ledger {
  entries(): readonly LedgerEntry[];
  get(tool: string, path: string): LedgerEntry | undefined;
  /** Records units whose records are stored. */
  append(entries: readonly (LedgerEntry & { readonly tool: string })[]): Promise<void>;
  /** Forgets units, so that they are read again. */
  forget(isForgotten: (entry: LedgerEntry) => boolean): void;
  close(): Promise<void>;
}

const Line = z.object({
  tool: z.string(),
  path: z.string(),
  fingerprint: z.string(),
  sessions: z.int(),
  notes: z.int(),
  places: z.array(z.string().nullable()),
});
const LIMITS = { lineBytes: 1_000_000, unbrokenBytes: 64_000_000 };

export function ledgerFolder(dataDir: string): string {
  return join(dataDir, "adopted");
}

/** Returns the file of a target: each storage and each server has its own. */
export function ledgerFile(dataDir: string, target: string): string {
  return join(ledgerFolder(dataDir), `${framedHash(target).slice(0, 16)}.jsonl`);
}

/** Reads the ledger. Lines that a killed process left incomplete are ignored; the last line of a unit counts. The first entry creates the file. */
export async function openLedger(path: string, signal: AbortSignal): Promise<Ledger> {
  const known = new Map<string, LedgerEntry>();
  const keyOf = (tool: string, unit: string) => `${tool}\n${unit}`;
  const existing = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0)).catch(ignoreMissing);
  if (existing) {
    // The stream closes the file.
    for await (const text of boundedLines(existing.createReadStream(), signal, LIMITS)) {
      const parsed = Line.safeParse(text === undefined ? undefined : jsonOf(text));
      if (parsed.success) known.set(keyOf(parsed.data.tool, parsed.data.path), parsed.data);
    }
  }
  let file: FileHandle | undefined;
  return {
    entries: () => [...known.values()],
    get: (tool, unit) => known.get(keyOf(tool, unit)),
    async append(entries) {
      if (entries.length === 0) return;
      file ??= await openForAppend(path);
      await file.write(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
      for (const entry of entries) known.set(keyOf(entry.tool, entry.path), entry);
    },
    forget(isForgotten) {
      for (const [key, entry] of known) if (isForgotten(entry)) known.delete(key);
    },
    close: async () => file?.close(),
  };
}

/** Empties the ledger. The file stays, as a sign that the user knows of adopting. */
export async function clearLedger(path: string): Promise<void> {
  await truncate(path).catch(ignoreMissing);
}

/** Opens the file to write at its end. Ends an incomplete last line, so that the next entry starts on a line of its own. */
async function openForAppend(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0), 0o600);
  const { size } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
  if (size > 0 && buffer[0] !== 10) await file.write("\n");
  return file;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // an incomplete line
  }
}
