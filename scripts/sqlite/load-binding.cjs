// Loads the SQLite binary of this platform from dist/sqlite/prebuilds. Replaces node-gyp-build, which @photostructure/sqlite
// runs when it is installed: an install script makes pnpm and npm warn, and it can start a compiler.
const { existsSync } = require("node:fs");
const { join } = require("node:path");

module.exports = function loadBinding() {
  const folder = join(__dirname, "prebuilds", `${process.platform}-${process.arch}`);
  const [first, second] = existsSync("/etc/alpine-release") ? ["musl", "glibc"] : ["glibc", "musl"];
  const load = (libc) => require(join(folder, `${libc}.node`));
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
};
