import { randomUUID } from "node:crypto";
import * as nodeFiles from "node:fs/promises";
import { join } from "node:path";
import { CairnError } from "../../model/errors.ts";
import { sha256Hex } from "../../model/ids.ts";
import type { Run, RunCheckpointInfo } from "../../model/run.ts";
import type { PayloadEncoding } from "../rows/run-payload.ts";

/** The file operations of the store; tests inject failing ones. */
export type FileOps = Pick<typeof nodeFiles, "link" | "mkdir" | "open" | "readdir" | "readFile" | "rename" | "rm" | "stat" | "unlink">;

/** One numbered file of a run's folder. The newest describes the run; the files with a checkpoint are its history. */
export interface Entry {
  readonly number: number;
  readonly run: Run;
  readonly deleted: boolean;
  /** Entries below this number belong to a deleted run of the same id and are ignored. */
  readonly since: number;
  readonly checkpoint?: (RunCheckpointInfo & { readonly encoding: PayloadEncoding; readonly stored: number }) | undefined;
}

/**
 * A run's folder as a log. A new entry is written to a temporary file, synced, and then given the next number with `link`, which unlike
 * `rename` fails when another process has taken that number: the process that gets it was the only one that saw the state before it. Then the folder is synced.
 */
export function entryLog(folder: string, files: FileOps = nodeFiles) {
  const pathOf = (number: number) => join(folder, `${String(number).padStart(12, "0")}.entry`);

  return {
    /** All numbers in use, highest first. */
    async numbers(): Promise<number[]> {
      const names = await files.readdir(folder).catch(ifMissing([] as string[]));
      return names.flatMap((name) => (/^\d{12}\.entry$/.test(name) ? [Number.parseInt(name, 10)] : [])).sort((a, b) => b - a);
    },

    /** The entry without its state, or `undefined` when it is gone or was torn. */
    async read(number: number): Promise<Entry | undefined> {
      const handle = await files.open(pathOf(number), "r").catch(ifMissing(undefined));
      if (!handle) return undefined;
      try {
        const { size } = await handle.stat();
        let head = Buffer.alloc(Math.min(size, 4096));
        await handle.read(head, 0, head.length, 0);
        if (size > head.length && head.indexOf(10, head.indexOf(10) + 1) < 0) head = await handle.readFile();
        const parsed = parse(head, number);
        return parsed && size === parsed.bodyAt + (parsed.entry.checkpoint?.stored ?? 0) ? parsed.entry : undefined;
      } finally {
        await handle.close();
      }
    },

    /** The stored state of an entry that has one. */
    async body(number: number): Promise<Uint8Array> {
      const content = await files.readFile(pathOf(number)).catch(ifMissing(undefined));
      const parsed = content && parse(content, number);
      const body = parsed && content.subarray(parsed.bodyAt);
      if (!body || sha256Hex(body) !== parsed.bodyHash)
        throw new CairnError("unavailable", `The checkpoint file ${pathOf(number)} is damaged. Resume from an earlier one.`, {
          details: { kind: "damaged", path: pathOf(number) },
        });
      return body;
    },

    /** Publishes the entry durably. Returns false if another process has taken the number. */
    async publish(entry: Entry, body: Uint8Array): Promise<boolean> {
      await makeFolder(folder, files);
      const header = Buffer.from(`${JSON.stringify({ ...entry, number: undefined })}\n`);
      const temporary = join(folder, `.${process.pid}-${randomUUID()}.tmp`);
      const handle = await files.open(temporary, "wx", 0o600);
      try {
        try {
          const first = Buffer.from(`cairn-run-1 ${sha256Hex(header)} ${sha256Hex(body)}\n`);
          await handle.writeFile(Buffer.concat([first, header, body]));
          await handle.sync();
        } finally {
          await handle.close();
        }
        await files.link(temporary, pathOf(entry.number));
      } catch (error) {
        if (codeOf(error) === "EEXIST") return false;
        throw error;
      } finally {
        await files.unlink(temporary).catch(() => {}); // a left-over costs space until the next prune, nothing else
      }
      await syncFolder(folder, files);
      return true;
    },

    async remove(number: number): Promise<void> {
      await files.unlink(pathOf(number)).catch(ifMissing(undefined));
    },

    /** Removes temporary files of killed processes. */
    async removeLeftovers(olderThanMs: number): Promise<void> {
      for (const name of await files.readdir(folder).catch(ifMissing([] as string[]))) {
        if (!name.endsWith(".tmp")) continue;
        const path = join(folder, name);
        const stat = await files.stat(path).catch(ifMissing(undefined));
        if (stat && Date.now() - stat.mtimeMs > olderThanMs) await files.unlink(path).catch(ifMissing(undefined));
      }
    },

    /** How long the holder of this token may write, as last renewed. Only that holder writes this file, so a plain rename will do. */
    async renewedUntil(fence: number): Promise<string | undefined> {
      const text = await files.readFile(join(folder, `lease-${fence}`), "utf8").catch(ifMissing(undefined));
      return text?.endsWith("Z") ? text : undefined;
    },

    async renew(fence: number, until: string): Promise<void> {
      const temporary = join(folder, `.${process.pid}-${randomUUID()}.tmp`);
      const handle = await files.open(temporary, "wx", 0o600);
      try {
        await handle.writeFile(until);
      } finally {
        await handle.close();
      }
      await files.rename(temporary, join(folder, `lease-${fence}`));
    },

    async forgetLease(fence: number): Promise<void> {
      await files.unlink(join(folder, `lease-${fence}`)).catch(ifMissing(undefined));
    },
  };
}

export type EntryLog = ReturnType<typeof entryLog>;

function parse(content: Buffer, number: number): { entry: Entry; bodyAt: number; bodyHash: string } | undefined {
  const first = content.indexOf(10);
  const second = content.indexOf(10, first + 1);
  if (first < 0 || second < 0) return undefined;
  const [magic, headerHash, bodyHash] = content.toString("latin1", 0, first).split(" ");
  const header = content.subarray(first + 1, second + 1);
  if (magic !== "cairn-run-1" || !bodyHash || sha256Hex(header) !== headerHash) return undefined;
  return { entry: { ...JSON.parse(header.toString("utf8")), number }, bodyAt: second + 1, bodyHash };
}

async function makeFolder(folder: string, files: FileOps): Promise<void> {
  const made = await files.mkdir(folder, { recursive: true, mode: 0o700 });
  if (made === undefined) return;
  // Makes the new names durable: syncs each folder from the created one up to its parent.
  for (let path = folder; path.length >= made.length; path = join(path, "..")) await syncFolder(join(path, ".."), files);
}

async function syncFolder(folder: string, files: FileOps): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there, and renames are journalled
  const handle = await files.open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns an error handler that replaces a missing file by this value. */
export function ifMissing<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (codeOf(error) === "ENOENT") return instead;
    throw error;
  };
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
