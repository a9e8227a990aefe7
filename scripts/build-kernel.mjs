#!/usr/bin/env node
// Compiles the vector kernel (AssemblyScript) and records its checksums. The result is checked in, because the compiler is
// 94 MB and the kernel is 3 KB. After a change of kernel.as, run: npm install --no-save assemblyscript@0.28.20 && npm run kernel
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const COMPILER = "assemblyscript@0.28.20";
const OPTIONS = ["--runtime", "stub", "--enable", "simd", "--importMemory", "-O3", "--converge", "--noAssert"];
const folder = join(dirname(fileURLToPath(import.meta.url)), "../src/stores/sqlite/vectors");

/** Compiles the source and returns the binary. Fails if the compiler is not installed. */
export async function compileKernel() {
  const source = readFileSync(join(folder, "kernel.as"), "utf8");
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
  if (error) throw new Error(stderr.toString() || error.message);
  return binary;
}

/** Returns the checksums of the source with its options, and of a binary. */
export function kernelChecksums(binary) {
  const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex");
  const source = readFileSync(join(folder, "kernel.as"), "utf8").replaceAll("\r\n", "\n");
  return { compiler: COMPILER, source: sha256(source, OPTIONS.join(" ")), binary: sha256(binary) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const binary = await compileKernel();
  writeFileSync(join(folder, "kernel.wasm"), binary);
  writeFileSync(join(folder, "kernel.checksums.json"), `${JSON.stringify(kernelChecksums(binary), null, 2)}\n`);
}
