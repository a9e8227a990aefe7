import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { localEmbedder } from "../../src/embedders/local/local.ts";
import { builtFile } from "../../src/files/built-file.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

describe("the local embedder", () => {
  it("is MiniLM where the native runtime loads, and then gives no notice", async () => {
    const notices: string[] = [];
    const embedder = await localEmbedder({ onNotice: (message) => notices.push(message) });
    expect(embedder).toMatchObject({ model: "all-MiniLM-L6-v2", version: "int8-1", dimension: 384 });
    expect(notices).toEqual([]);
    await embedder.close();
  });

  it("is the static model, said once, where the native runtime is not installed", async () => {
    expect(await embedIn(installation())).toEqual({
      model: "cairn-static",
      length: 256,
      notices: [expect.stringMatching(/onnxruntime-node/)],
    });
  });

  it("is the static model, said once, where the native runtime is installed but does not load", async () => {
    const folder = installation();
    const broken = join(folder, "node_modules", "onnxruntime-node");
    mkdirSync(broken, { recursive: true });
    writeFileSync(join(broken, "binding.node"), "not a shared library");
    writeFileSync(join(broken, "index.js"), `module.exports = require("./binding.node");`);
    expect(await embedIn(folder)).toEqual({ model: "cairn-static", length: 256, notices: [expect.stringMatching(/binding\.node/)] });
  });
});

/** The built package in a place of its own, with the models but without any dependency. */
function installation(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-bare-"));
  folders.push(folder);
  const dist = builtFile("");
  cpSync(dist, join(folder, "dist"), { recursive: true, filter: (path) => !relative(dist, path).startsWith("models") });
  symlinkSync(builtFile("models"), join(folder, "dist", "models"));
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
  return folder;
}

async function embedIn(folder: string): Promise<unknown> {
  const program = `
    const { localEmbedder } = await import(${JSON.stringify(`file://${folder}/dist/embedders/local/local.js`)});
    const notices = [];
    const embedder = await localEmbedder({ onNotice: (message) => notices.push(message) });
    const [vector] = await embedder.embed(["hello"]);
    await embedder.embed(["hello again"]);
    console.log(JSON.stringify({ model: embedder.model, length: vector.length, notices }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 250_000 });
  return JSON.parse(stdout);
}
