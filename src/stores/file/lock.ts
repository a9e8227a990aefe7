import { link, open, rename, rm, stat } from "node:fs/promises";
import { CairnError } from "../../model/errors.ts";
import { newId } from "../../model/ids.ts";
import { waitLimitMs } from "../../scheduling/calls.ts";
import { poll } from "../../scheduling/retry.ts";

/** The work under a lock takes milliseconds, so an older lock was left behind by a process that died. */
const STALE_MS = 10_000;
const WAIT_MS = 20_000;

/** Runs short work that no other process runs at the same time. The lock is a file, made exclusively; one left by a dead process is cleared. */
export async function withFileLock<T>(path: string, work: () => Promise<T>, waitMs = WAIT_MS): Promise<T> {
  const attempt = async () => {
    if (await tryLock(path)) return true;
    await clearStale(path);
    return undefined;
  };
  if (!(await poll(attempt, { everyMs: 15, limitMs: waitLimitMs(waitMs) })))
    throw new CairnError("unavailable", `Another process holds ${path}. Try again; if none runs, remove the file.`, {
      retryAfterMs: 1_000,
    });
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function tryLock(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function clearStale(path: string): Promise<void> {
  if (!(await isStale(path))) return;
  // Moving it aside is atomic: of several processes that saw the stale lock, one moves it. What was moved is looked at once
  // more, because another process may have cleared the stale lock and taken its own in between; then that one is put back.
  const aside = `${path}.${newId()}.stale`;
  try {
    await rename(path, aside);
    if (!(await isStale(aside))) await link(aside, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "EEXIST") throw error; // another process was quicker
  }
  await rm(aside, { force: true });
}

async function isStale(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined); // just released
  return found !== undefined && Date.now() - found.mtimeMs > STALE_MS;
}
