import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const folder = join(root, "src/stores/sqlite/vectors");
const { compileKernel, kernelChecksums } = (await import(pathToFileURL(join(root, "scripts/build-kernel.mjs")).href)) as {
  compileKernel(): Promise<Uint8Array>;
  kernelChecksums(binary: Uint8Array): { readonly compiler: string; readonly source: string; readonly binary: string };
};
const checkedIn = readFileSync(join(folder, "kernel.wasm"));

describe("the checked-in vector kernel", () => {
  it("was compiled from the source next to it", () => {
    const recorded = JSON.parse(readFileSync(join(folder, "kernel.checksums.json"), "utf8"));
    expect(kernelChecksums(checkedIn), "Run npm run kernel after a change of kernel.as.").toEqual(recorded);
  });

  it("is what the build copies to dist/", () => {
    expect(readFileSync(join(root, "dist/kernel/scan.wasm")).equals(checkedIn)).toBe(true);
  });

  it.runIf(isInstalled("assemblyscript/asc"))("equals a new compilation, where the compiler is installed", async () => {
    expect(Buffer.from(await compileKernel()).equals(checkedIn)).toBe(true);
  });
});

function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}
