import { randomBytes } from "node:crypto";
import { access, constants, open, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { CairnError } from "../../../model/errors.ts";

/** Bytes that the probe writes: more than a commit of one record takes. */
const PROBE_BYTES = 64 * 1024;
/** Database files of a folder whose permissions are checked. */
const FILES_MAX = 1_000;

/**
 * Writes a block to the folder's disk, syncs it and checks that the database files may be written, so that a full disk, a
 * read-only mount or a read-only file shows before a save fails. The probe's file is unlinked before it is written: whatever
 * happens, no content stays behind. A folder that does not exist yet passes. Raises `unavailable`.
 */
export async function probeWrite(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw refusal(folder, error);
  });
  if (names === undefined) return;
  await writeBlock(folder).catch((error: unknown) => {
    throw refusal(folder, error);
  });
  for (const name of names.filter((one) => one.endsWith(".db")).slice(0, FILES_MAX)) {
    const path = join(folder, name);
    // Not opened: closing a second descriptor of a database would drop the locks that SQLite holds on the first.
    await access(path, constants.W_OK).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw refusal(path, error); // removed meanwhile
    });
  }
}

async function writeBlock(folder: string): Promise<void> {
  const path = join(folder, `.write-probe-${randomBytes(6).toString("hex")}`);
  const file = await open(path, "wx", 0o600);
  try {
    await unlink(path);
    await file.writeFile(Buffer.alloc(PROBE_BYTES));
    await file.sync();
  } finally {
    await file.close();
  }
}

function refusal(path: string, cause: unknown): CairnError {
  const { code = "unknown error" } = cause as NodeJS.ErrnoException;
  const message = ["ENOSPC", "EDQUOT", "EFBIG"].includes(code)
    ? `The disk that holds ${path} is full (${code}). Nothing can be stored; free some space.`
    : `${path} cannot be written (${code}). Check its permissions and its disk.`;
  return new CairnError("unavailable", message, { cause, details: { path, code } });
}
