#!/usr/bin/env node
// Compiles the vector kernel (AssemblyScript) into dist/kernel/scan.wasm. Does nothing when the source has not changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const OPTIONS = ["--runtime", "stub", "--enable", "simd", "--importMemory", "-O3", "--converge", "--noAssert"];

await buildKernel();

async function buildKernel() {
  const source = readFileSync(join(root, "src/stores/sqlite/vectors/kernel.as"), "utf8");
  const folder = join(root, "dist/kernel");
  const stampFile = join(folder, "scan.stamp");
  const stamp = createHash("sha256").update(source).update(OPTIONS.join(" ")).digest("hex");
  if (existsSync(join(folder, "scan.wasm")) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;

  const { default: asc } = await import("assemblyscript/asc");
  let binary;
  // The file ends in .as so that tsc and the linter ignore it. The compiler gets it as scan.ts.
  const { error, stderr } = await asc.main(["scan.ts", "--outFile", "scan.wasm", ...OPTIONS], {
    readFile: (name) => (name === "scan.ts" ? source : null),
    writeFile: (name, data) => {
      if (name === "scan.wasm") binary = data;
    },
    listFiles: () => [],
  });
  if (error) {
    console.error(stderr.toString() || error.message);
    process.exit(1);
  }
  mkdirSync(folder, { recursive: true });
  // A process that loads the kernel during the build must see a complete file.
  const temporary = join(folder, `scan.${process.pid}.tmp`);
  writeFileSync(temporary, binary);
  renameSync(temporary, join(folder, "scan.wasm"));
  writeFileSync(stampFile, stamp);
}
