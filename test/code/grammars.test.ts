import { spawnSync } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Language, Parser } from "web-tree-sitter";
import type { Grammar } from "../../src/code/chunking/grammar.ts";
import { GRAMMARS, type GrammarName } from "../../src/code/chunking/grammars/index.ts";
import { readGrammar } from "../../src/code/tree-sitter.ts";

const root = resolve(import.meta.dirname, "../..");

describe("the grammars", () => {
  beforeAll(() => Parser.init());

  it("are packed by the build only when their checksums match", () => {
    const scratch = mkdtempSync(join(tmpdir(), "cairn-grammars-"));
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
    cpSync(join(root, "scripts/build-grammars.mjs"), join(scratch, "scripts/build-grammars.mjs"));
    const build = () => spawnSync(process.execPath, [join(scratch, "scripts/build-grammars.mjs")], { encoding: "utf8" });
    const require = createRequire(import.meta.url);
    const installed = join(scratch, "node_modules/tree-sitter-wasm");
    cpSync(dirname(require.resolve("tree-sitter-wasm/manifest.json")), installed, {
      recursive: true,
      filter: (path) => !path.includes("/out/") || /\/(c|elixir|haskell|html|json|kotlin|lua|sql|swift|yaml|zig)(\/|$)/.test(path),
    });
    const packaged = "@vscode/tree-sitter-wasm";
    cpSync(dirname(require.resolve(`${packaged}/package.json`)), join(scratch, "node_modules", packaged), { recursive: true });
    expect(build()).toMatchObject({ status: 0, stderr: "" });
    const copies = readdirSync(join(scratch, "dist/grammars"));
    expect(copies).toEqual(expect.arrayContaining(["c", "html", "json", "rust", "sql", "yaml"].map((name) => `${name}.wasm.br`)));
    expect(copies).toHaveLength(24);

    appendFileSync(join(installed, "out/json/tree-sitter-json.wasm"), "\0");
    expect(build().status, "a copy that exists is complete").toBe(0);
    rmSync(join(scratch, "dist"), { recursive: true });
    const refused = build();
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain("The grammar json of tree-sitter-wasm has another checksum");
    expect(readdirSync(join(scratch, "dist/grammars"))).not.toContain("json.wasm.br");
  });

  it.each(Object.entries<Grammar>(GRAMMARS))("of %s has every node type that our rules name", async (language, grammar) => {
    const { types } = await Language.load(await readGrammar(language as GrammarName));
    const { definitions, identifiers, leads, wrappers = [], open = [] } = grammar;
    const named = [...Object.keys(definitions), ...identifiers, ...leads, ...wrappers, ...open];
    expect(named.filter((type) => !types.includes(type))).toEqual([]);
  });
});
