import { readFileSync, statSync } from "node:fs";

/**
 * Returns the other processes that have the database open, by the lock that SQLite keeps on the file. Known on Linux only, `undefined`
 * elsewhere. A process in another container counts as process 0.
 */
export function otherUsers(path: string): readonly number[] | undefined {
  let locks: string;
  try {
    locks = readFileSync("/proc/locks", "utf8");
  } catch {
    return undefined; // not Linux: the user must know
  }
  const inodes = ["", "-shm"].map((suffix) => statSync(path + suffix, { throwIfNoEntry: false })?.ino).filter((ino) => ino !== undefined);
  const holders = locks.split("\n").flatMap((line) => {
    const [, pid, inode] = /\s(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /.exec(line) ?? [];
    return inode !== undefined && inodes.includes(Number(inode)) ? [Number(pid)] : [];
  });
  return [...new Set(holders)].filter((pid) => pid !== process.pid);
}
