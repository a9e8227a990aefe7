#!/usr/bin/env node
// Copies the SQLite engine for Node versions without a complete node:sqlite to dist/sqlite: the binaries of the npm package
// @photostructure/sqlite for all platforms. Its JavaScript adds nothing that Cairn uses, and takes longer to load than the binary.
// The package itself has an install script and 11 MB of C sources, so it is needed for the build only. See NOTICE for authors and licences.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const source = dirname(createRequire(import.meta.url).resolve("@photostructure/sqlite/package.json"));
const target = join(root, "dist/sqlite");

const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
const loader = readFileSync(join(root, "scripts/sqlite/load-binding.cjs"), "utf8");
const stamp = `${version}, binaries\n${loader}`;
const stampFile = join(target, "built-from.txt");
if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) build();

function build() {
  rmSync(target, { recursive: true, force: true });
  for (const platform of readdirSync(join(source, "prebuilds"))) copyBinaries(platform);
  write("LICENSE", readFileSync(join(source, "LICENSE")));
  write("load-binding.cjs", loader);
  write("built-from.txt", stamp);
}

/** Copies `@photostructure+sqlite.musl.node` as `musl.node`, for example. */
function copyBinaries(platform) {
  const from = join(source, "prebuilds", platform);
  mkdirSync(join(target, "prebuilds", platform), { recursive: true });
  for (const name of readdirSync(from)) {
    const to = join(target, "prebuilds", platform, name.replace(/^.*\.(\w+\.node)$/, "$1"));
    copyFileSync(join(from, name), `${to}.new`);
    renameSync(`${to}.new`, to); // a process that has the old binary loaded keeps it
  }
}

function write(name, content) {
  writeFileSync(join(target, `${name}.new`), content);
  renameSync(join(target, `${name}.new`), join(target, name));
}
