import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import { framedHash } from "../../model/ids.ts";
import { isLoopback } from "../../text/networks.ts";
import { replaceFile } from "./replace-file.ts";

/** Where the server of a data folder and storage listens, so that `cairn ui` finds it. */
export interface ServerRecord {
  /** Stores the address of this process. The newest server wins. */
  write(url: string): Promise<void>;
  /** Removes the record if it is still that of this process. */
  remove(): Promise<void>;
  /** Returns the address of a server that runs as this user on loopback, or `undefined`. */
  read(): string | undefined;
}

const Stored = z.object({ url: z.url(), pid: z.int().positive(), storage: z.string() });
const MAX_BYTES = 4_096;

export interface ServerRecordOptions {
  readonly dataDir: string;
  /** The storage setting. A server of the same folder may use another storage, and would show other records. */
  readonly storage: string;
}

/** Keeps the record in `<dataDir>/server.json`, which only its owner may write. It names the storage by a hash: a URL can have a password. */
export function serverRecord({ dataDir, storage: setting }: ServerRecordOptions): ServerRecord {
  const storage = framedHash("storage", setting);
  const path = join(dataDir, "server.json");
  const stored = () => {
    try {
      return Stored.safeParse(JSON.parse(readOwnFile(path, MAX_BYTES).toString("utf8"))).data;
    } catch {
      return undefined; // absent, writable by others, or damaged: a record is only a hint
    }
  };
  return {
    write: (url) => replaceFile(path, `${JSON.stringify({ url, pid: process.pid, storage })}\n`),
    async remove() {
      if (stored()?.pid === process.pid) await rm(path, { force: true });
    },
    read() {
      const found = stored();
      if (found?.storage !== storage) return undefined;
      return isOwnProcess(found.pid) && isLoopback(new URL(found.url).hostname.replace(/^\[(.*)\]$/, "$1")) ? found.url : undefined;
    },
  };
}

/** Whether the process exists and belongs to this user: another user's process may have taken the port of a server that ended. */
function isOwnProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
