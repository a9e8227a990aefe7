#!/usr/bin/env node
// Compiles the WebAssembly kernels (AssemblyScript) and records their checksums. The results are checked in, because the compiler is
// 94 MB and a kernel is 3 KB. After a change of a source, run: npm install --no-save assemblyscript@0.28.20 && npm run kernel
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The sources without their ending `.as`, and the files that the build copies the binaries to, in dist/. */
export const KERNELS = {
  "src/stores/sqlite/vectors/kernel": "kernel/scan.wasm",
  "src/embedders/local/sum-rows": "kernel/sum-rows.wasm",
};

export const COMPILER = "assemblyscript@0.28.20";
const OPTIONS = ["--runtime", "stub", "--enable", "simd", "--importMemory", "-O3", "--converge", "--noAssert"];
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Compiles a source and returns the binary. Fails if the compiler is not installed. */
export async function compileKernel(name) {
  const source = readFileSync(join(root, `${name}.as`), "utf8");
  const { default: asc } = await import("assemblyscript/asc");
  let binary;
  // The file ends in .as so that tsc and the linter ignore it. The compiler gets it as scan.ts.
  const { error, stderr } = await asc.main(["scan.ts", "--outFile", "scan.wasm", ...OPTIONS], {
    readFile: (file) => (file === "scan.ts" ? source : null),
    writeFile: (file, data) => {
      if (file === "scan.wasm") binary = data;
    },
    listFiles: () => [],
  });
  if (error) throw new Error(stderr.toString() || error.message);
  return binary;
}

/** Returns the checksums of the source with its options, and of a binary. */
export function kernelChecksums(name, binary) {
  const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex");
  const source = readFileSync(join(root, `${name}.as`), "utf8").replaceAll("\r\n", "\n");
  return { compiler: COMPILER, source: sha256(source, OPTIONS.join(" ")), binary: sha256(binary) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of Object.keys(KERNELS)) {
    const binary = await compileKernel(name);
    writeFileSync(join(root, `${name}.wasm`), binary);
    writeFileSync(join(root, `${name}.checksums.json`), `${JSON.stringify(kernelChecksums(name, binary), null, 2)}\n`);
  }
}
