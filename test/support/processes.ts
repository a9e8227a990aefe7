import type { ChildProcess } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Whether a process runs. One that has ended is gone, also while nobody has asked for its exit code yet. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return process.platform !== "linux"; // without /proc the signal has to do
  }
}

/** For MCP clients: a server that is a process of its own takes a while to start, and its client waits a minute unless told otherwise. */
export const SLOW_START = { timeout: 280_000 };

/** Ends a process, and waits until it is no more. */
export async function killProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** Removes a folder that a process which is just ending, and whose end cannot be waited for, may still write to. */
export async function removeFolder(path: string): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return rmSync(path, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY" || attempt === 100) throw error;
      await sleep(100);
    }
}
