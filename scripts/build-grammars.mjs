#!/usr/bin/env node
// Copies the tree-sitter grammars that @vscode/tree-sitter-wasm lacks from the npm package tree-sitter-wasm to
// dist/grammars, and checks each against its checksum. That package has every grammar there is (118 MB) and is
// therefore needed for the build only. See NOTICE for authors and licences.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "2.0.2";
const SHA256 = {
  c: "7b80a64003e8ef8cde197329ee0167e9270f67663f2e6c6ef7d67b5425998aac",
  html: "586f702f79fb297bf6d040807c9c7b315023dc4e65633a9ed548676a23777151",
  json: "f60270905cfa2483e8444559620150c0a1a2b23684a9d4b8b79b4528887863bb",
  sql: "b77530893b1dd6d1d4814eacf34d25bcbe4a12ec9a25a8c45b320d447265f42b",
  yaml: "81dd56ecfadd34b62181f996e52cff6d3c4c026d7fbff6a201323a9abe8b2580",
};
const REINSTALL = `Run npm install to get tree-sitter-wasm ${VERSION}.`;

const target = join(dirname(fileURLToPath(import.meta.url)), "../dist/grammars");
mkdirSync(target, { recursive: true });
for (const [language, expected] of Object.entries(SHA256)) copyGrammar(language, expected);

function copyGrammar(language, expected) {
  const file = `tree-sitter-${language}.wasm`;
  const path = join(target, file);
  if (existsSync(path) && sha256(readFileSync(path)) === expected) return;
  const content = readFileSync(join(packageFolder(), "out", language, file));
  if (sha256(content) !== expected)
    throw new Error(`${file} of tree-sitter-wasm has another checksum than this build expects. ${REINSTALL}`);
  // A process that loads the grammar during the build must see a complete file.
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content);
  renameSync(temporary, path);
}

function packageFolder() {
  try {
    return dirname(createRequire(import.meta.url).resolve("tree-sitter-wasm/manifest.json"));
  } catch (cause) {
    throw new Error(`The npm package tree-sitter-wasm is missing. ${REINSTALL}`, { cause });
  }
}

function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}
