import type { ChildProcess } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Returns whether a process runs. A zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return process.platform !== "linux"; // without /proc only the signal is available
  }
}

/** Options of MCP clients whose server is a child process: it may start slowly, and the default timeout is one minute. */
export const SLOW_START = { timeout: 280_000 };

/** Kills a process and waits until it has ended. */
export async function killProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** Removes a folder to which an ending process may still write. Its end cannot be awaited, so removal is repeated. */
export async function removeFolder(path: string): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return rmSync(path, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY" || attempt === 100) throw error;
      await sleep(100);
    }
}
