// Loads the SQLite binary of this platform from dist/sqlite/prebuilds. Replaces node-gyp-build, which @photostructure/sqlite
// runs when it is installed: an install script makes pnpm and npm warn, and it can start a compiler.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export default function loadBinding() {
  const folder = fileURLToPath(new URL(`prebuilds/${process.platform}-${process.arch}/`, import.meta.url));
  const [first, second] = existsSync("/etc/alpine-release") ? ["musl", "glibc"] : ["glibc", "musl"];
  const load = (libc) => createRequire(import.meta.url)(join(folder, `${libc}.node`));
  try {
    return load(first);
  } catch (error) {
    if (!existsSync(folder))
      throw new Error(
        `SQLite has no binary for ${process.platform}-${process.arch} with Node ${process.versions.node}. Use Node 22.16 or newer, which contains SQLite.`,
      );
    // A Linux with musl that is not Alpine.
    if (existsSync(join(folder, `${second}.node`)) && /musl|libc|GLIBC/.test(error.message)) return load(second);
    throw error;
  }
}
