import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { CairnError } from "../model/errors.ts";

/**
 * Opens a regular file for reading and returns its descriptor. Any other file is rejected: a FIFO would block the process until it has a
 * writer, and a device such as /dev/zero never ends. File system errors are thrown unchanged.
 */
export function openRegularFile(path: string): number {
  assertRegular(path, statSync(path)); // before opening: some devices act when they are opened
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
  try {
    assertRegular(path, fstatSync(descriptor)); // the path may name another file now
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Reads a regular file of at most `limitBytes`; `check` may reject the opened file. The reported size is not trusted: the file may grow. */
export function readRegularFile(path: string, limitBytes: number, check: (stats: Stats) => void = () => {}): Buffer {
  const descriptor = openRegularFile(path);
  try {
    const stats = fstatSync(descriptor);
    check(stats);
    const { size } = stats;
    if (size > limitBytes) throw tooLarge(path, size, limitBytes);
    const bytes = Buffer.allocUnsafe(size + 1);
    let length = 0;
    for (;;) {
      const count = readSync(descriptor, bytes, length, bytes.length - length, length);
      length += count;
      if (count === 0) return bytes.subarray(0, length);
      if (length > size) throw new CairnError("conflict", `${shortPath(path)} changed while it was read. Try again.`);
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Rejects a path of anything but a regular file, without opening it. Throws the file system error for a missing file. */
export function assertRegularFile(path: string): void {
  assertRegular(path, statSync(path));
}

function assertRegular(path: string, stats: Stats): void {
  if (stats.isFile()) return;
  throw new CairnError("invalid_input", `${shortPath(path)} is ${kindOf(stats)}, not a regular file. Give the path of a regular file.`);
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return "a folder";
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

function tooLarge(path: string, size: number, limitBytes: number): CairnError {
  return new CairnError("too_large", `${shortPath(path)} has ${size} bytes; at most ${limitBytes} are read. Give a smaller file.`);
}

/** Formats a path for a message: quoted, and without its start if it is very long. */
export function shortPath(path: string): string {
  return JSON.stringify(path.length > 300 ? `…${path.slice(-300)}` : path);
}
