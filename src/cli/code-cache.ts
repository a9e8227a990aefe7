import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { isAbsolute, join } from "node:path";

const DIGEST_BYTES = 32;
/** Code of versions that were replaced is removed after this time. */
const KEPT_MS = 30 * 24 * 3_600_000;

/** Compiled code of files whose name contains the hash of their content. */
export interface CodeCache {
  read(name: string): Buffer | undefined;
  writeAtExit(name: string, code: () => Buffer): void;
}

/** Opens the code cache of this user, or none if there is no folder that only this user can write to. */
export function openCodeCache(env: NodeJS.ProcessEnv): CodeCache | undefined {
  const folder = codeCacheFolder(env);
  if (folder === undefined) return undefined;
  const fileOf = (name: string) => join(folder, `${name}-${process.version}-${process.arch}`);
  const pending = new Map<string, () => Buffer>();
  return {
    read: (name) => checked(readOwned(fileOf(name))),
    writeAtExit(name, code) {
      if (pending.size === 0)
        process.once("exit", () => {
          removeOld(folder);
          for (const [file, code] of pending) write(file, code);
        });
      pending.set(fileOf(name), code);
    },
  };
}

/** Returns the folder for compiled code and creates it. Undefined if the cache is switched off, or if others can write to the folder. */
export function codeCacheFolder(env: NodeJS.ProcessEnv): string | undefined {
  if (env.NODE_DISABLE_COMPILE_CACHE) return undefined;
  try {
    const folder = join(userCache(env), "cairn", "code");
    const stats = lstatSync(folder, { throwIfNoEntry: false }) ?? makeFolder(folder);
    return stats.isDirectory() && isOwn(stats) ? folder : undefined;
  } catch {
    return undefined; // without a home or on a read-only disk the command runs without the cache
  }
}

function makeFolder(folder: string): Stats {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return lstatSync(folder);
}

function userCache(env: NodeJS.ProcessEnv): string {
  const home = () => process.getBuiltinModule("node:os").homedir();
  const given = process.platform === "win32" ? env.LOCALAPPDATA : env.XDG_CACHE_HOME;
  if (given && isAbsolute(given)) return given;
  return process.platform === "darwin" ? join(home(), "Library", "Caches") : join(home(), ".cache");
}

/** Reports whether only this user can write. Windows protects the profile folder with access lists instead of modes. */
function isOwn({ uid, mode }: Stats): boolean {
  return process.platform === "win32" || (uid === process.getuid!() && (mode & 0o022) === 0);
}

function readOwned(file: string): Buffer | undefined {
  let opened: number | undefined;
  try {
    opened = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    return isOwn(fstatSync(opened)) ? readFileSync(opened) : undefined;
  } catch {
    return undefined;
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

/** Returns the code of a cache file if its digest is right: V8 checks its version and its flags, but not every byte. */
function checked(stored: Buffer | undefined): Buffer | undefined {
  const code = stored?.subarray(DIGEST_BYTES);
  return code && digest(code).equals(stored!.subarray(0, DIGEST_BYTES)) ? code : undefined;
}

function digest(code: Buffer): Buffer {
  return process.getBuiltinModule("node:crypto").createHash("sha256").update(code).digest();
}

/** Replaces a file in one step, so that a reader never sees a part of it. */
function write(file: string, codeOf: () => Buffer): void {
  const partial = `${file}.${process.pid}`;
  try {
    const code = codeOf();
    writeFileSync(partial, Buffer.concat([digest(code), code]), { mode: 0o600, flag: "wx" });
    renameSync(partial, file);
  } catch {
    rmSync(partial, { force: true }); // the next start compiles the source again
  }
}

function removeOld(folder: string): void {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const file = join(folder, entry.name);
      if (entry.isFile() && lstatSync(file).mtimeMs < Date.now() - KEPT_MS) rmSync(file);
    }
  } catch {
    // another process removed it first
  }
}
