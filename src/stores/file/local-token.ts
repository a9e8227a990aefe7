import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { CairnError } from "../../model/errors.ts";
import { withFileLock } from "./lock.ts";
import { replaceFile } from "./replace-file.ts";

/** The token of the local user. A caller that presents it is an administrator of this machine's server. */
export interface LocalToken {
  readonly path: string;
  /** Returns the token, and creates it if there is none. */
  readOrCreate(): Promise<string>;
  /** Returns the token, or `undefined` if there is none. */
  read(): Promise<string | undefined>;
  /** Replaces the token. Servers refuse the old one from the next request on. */
  rotate(): Promise<string>;
}

const SHAPE = /^cairn_local_[A-Za-z0-9_-]{43}$/;
const MAX_BYTES = 256;
/** Without these a link or a FIFO in the file's place would be followed or waited for. Windows has neither flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Keeps the token in `<dataDir>/token`, which only its owner may read. */
export function localToken({ dataDir }: { readonly dataDir: string }): LocalToken {
  const path = join(dataDir, "token");
  let seen: { readonly stamp: string; readonly token: string } | undefined;

  // Every request asks for the token, so the file is only read again when it has changed. A change of its mode changes ctime.
  async function read(): Promise<string | undefined> {
    const stamp = await stampOf(path);
    if (stamp === undefined) return undefined;
    if (seen?.stamp !== stamp) seen = { stamp, token: await readToken(path) };
    return seen.token;
  }

  async function change(keepExisting: boolean): Promise<string> {
    try {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      return await withFileLock(`${path}.lock`, async () => {
        const existing = keepExisting ? await read() : undefined;
        if (existing !== undefined) return existing; // another process was faster
        const token = `cairn_local_${randomBytes(32).toString("base64url")}`;
        await replaceFile(path, `${token}\n`);
        return token;
      });
    } catch (error) {
      if (error instanceof CairnError) throw error;
      throw new CairnError("unavailable", `The local token cannot be stored in ${path}. Check that this user may write to the folder.`, {
        cause: error,
      });
    }
  }

  return {
    path,
    read,
    readOrCreate: async () => (await read()) ?? change(true),
    rotate: () => change(false),
  };
}

async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { ino, ctimeNs, size } = await lstat(path, { bigint: true });
    return `${ino}:${ctimeNs}:${size}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unusable(path, "cannot be read", "Check the permissions of its folder.", error);
  }
}

async function readToken(path: string): Promise<string> {
  const file = await open(path, FLAGS).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ELOOP") throw unusable(path, "is a symbolic link", REPLACE_IT, error);
    throw unusable(path, "cannot be read", "Run the command as the user that owns the file.", error);
  });
  try {
    const { mode, uid, size } = await file.stat().then((found) => {
      if (!found.isFile()) throw unusable(path, "is not a regular file", REPLACE_IT);
      return found;
    });
    if (process.platform !== "win32") {
      if (uid !== process.geteuid?.())
        throw unusable(
          path,
          "belongs to another user, who knows the token",
          "Run the command as that user, or replace it with `cairn token --rotate`.",
        );
      if ((mode & 0o077) !== 0)
        throw unusable(path, "can be read or written by other users, so the token may be known to them", REPLACE_IT);
    }
    const text = size > MAX_BYTES ? "" : (await file.readFile("utf8")).trimEnd();
    if (!SHAPE.test(text)) throw unusable(path, "does not hold a token", REPLACE_IT);
    return text;
  } finally {
    await file.close();
  }
}

const REPLACE_IT = "Replace it with `cairn token --rotate`.";

function unusable(path: string, problem: string, advice: string, cause?: unknown): CairnError {
  return new CairnError("unavailable", `The local token in ${path} ${problem}. ${advice}`, { cause });
}
