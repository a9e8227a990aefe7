import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const { compileKernel, kernelChecksums, KERNELS } = (await import(pathToFileURL(join(root, "scripts/build-kernel.mjs")).href)) as {
  readonly KERNELS: Readonly<Record<string, string>>;
  compileKernel(name: string): Promise<Uint8Array>;
  kernelChecksums(name: string, binary: Uint8Array): { readonly compiler: string; readonly source: string; readonly binary: string };
};

describe.each(Object.entries(KERNELS))("the checked-in kernel %s", (name, built) => {
  const checkedIn = readFileSync(join(root, `${name}.wasm`));

  it("was compiled from the source next to it", () => {
    const recorded = JSON.parse(readFileSync(join(root, `${name}.checksums.json`), "utf8"));
    expect(kernelChecksums(name, checkedIn), "Run npm run kernel after a change of the source.").toEqual(recorded);
  });

  it("is what the build copies to dist/", () => {
    expect(readFileSync(join(root, "dist", built)).equals(checkedIn)).toBe(true);
  });

  it.runIf(isInstalled("assemblyscript/asc"))("equals a new compilation, where the compiler is installed", async () => {
    expect(Buffer.from(await compileKernel(name)).equals(checkedIn)).toBe(true);
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
