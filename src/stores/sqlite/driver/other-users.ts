import { readFileSync, statSync } from "node:fs";

/**
 * Other processes that have the database open: SQLite keeps a lock on the file as long. Known on Linux only, `undefined` elsewhere.
 * A process in another container counts too, as process 0.
 */
export function otherUsers(path: string): readonly number[] | undefined {
  let locks: string;
  try {
    locks = readFileSync("/proc/locks", "utf8");
  } catch {
    return undefined; // not Linux: the person must know
  }
  const inodes = ["", "-shm"].map((suffix) => statSync(path + suffix, { throwIfNoEntry: false })?.ino).filter((ino) => ino !== undefined);
  const holders = locks.split("\n").flatMap((line) => {
    const [, pid, inode] = /\s(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /.exec(line) ?? [];
    return inode !== undefined && inodes.includes(Number(inode)) ? [Number(pid)] : [];
  });
  return [...new Set(holders)].filter((pid) => pid !== process.pid);
}
