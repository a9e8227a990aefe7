#!/usr/bin/env node
// Compresses the tree-sitter grammars of two npm packages into dist/grammars, and checks each against its checksum. They are
// 24 MB, and 2 MB compressed. The packages are needed for the build only. See NOTICE for authors and licences.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";

/** The package of each grammar, the file in it by the grammar's name, and the checksums. */
const SOURCES = [
  {
    name: "@vscode/tree-sitter-wasm",
    anchor: "package.json",
    file: (grammar) => `wasm/tree-sitter-${grammar}.wasm`,
    sha256: {
      bash: "a14e9ed880b2c3f16cd00c796c38d237a3e9b028bdec5b4315c76976e67b01ca",
      "c-sharp": "d12d85996c25957b4c1b71e26db2d7cc8a294997b60642e9c2a3b031b2c66dd3",
      cpp: "77a65bd42f43c2dcd69af40c12a6c32d6ed81d360c025e9feb28911f8339fd69",
      css: "8a23977fe271357cce6f254ef88c9bebf3854602d8046605aef6a45c02135c59",
      go: "9504573f352b20be7f2f1911754d710622aedc15afff16d5ed8fb5645681aee7",
      java: "4fdeac4ca6ca089f06c6f7e562abcac1733cd465728cc7031ebb73c2019122c4",
      javascript: "5fb488d0cabb4775a594bab85682de5ad6ce83c0d6ac997a9f82dd084d571240",
      php: "d4df6a6ff08c87c3ec4f9cbb785fe09998a0cb570e03f57d7b19b3acfb146aa7",
      python: "16108b50df4ee9a30168794252ab55e7c93bfc5765d7fa0aa3e335752c515f47",
      ruby: "09a96427d7c72f0613ed470cd9812223fc4a91d6a9c025c0235cc6bd59ff96f4",
      rust: "0dac14947cb04d94466e3df659f80a4e264c216a60b3eda175eae4cf12ed7a8d",
      tsx: "79e5da75ea62855a0cd67177685f0164eac87d5f630b3cbe1e0a099751ad30f8",
      typescript: "778025db5a8be0e70f8ccc3671e486dfeddd048c25d9e8a70c26de2e1bf6f97d",
    },
  },
  {
    name: "tree-sitter-wasm",
    anchor: "manifest.json",
    file: (grammar) => `out/${grammar}/tree-sitter-${grammar}.wasm`,
    sha256: {
      c: "7b80a64003e8ef8cde197329ee0167e9270f67663f2e6c6ef7d67b5425998aac",
      elixir: "1059cf0fe8666f0a0ce3d496a2e5451d736d0401186be7a20fc96fda321feb6e",
      haskell: "1d749bd88cfc6d93f28d777451be12a3fffe93b75fc2b8dcdd6e8d8ea9a544c7",
      html: "586f702f79fb297bf6d040807c9c7b315023dc4e65633a9ed548676a23777151",
      json: "f60270905cfa2483e8444559620150c0a1a2b23684a9d4b8b79b4528887863bb",
      kotlin: "82f658c6d6e07f0c2a421ab7e1308763fffa16627c7d10e9dd9f6f9a4f9ff25a",
      lua: "aedb69dbe1d27c031dde44e40e4ebb3c709adc51097be9f4114c60d6bd0262a4",
      sql: "b77530893b1dd6d1d4814eacf34d25bcbe4a12ec9a25a8c45b320d447265f42b",
      swift: "3553bb4258b20fe3514c12a6e68d990036b9446e528283ec6ab79ede8854e791",
      yaml: "81dd56ecfadd34b62181f996e52cff6d3c4c026d7fbff6a201323a9abe8b2580",
      zig: "c239344ce2612c87937445deb27af5083476fea7842b7bad6cf34c4db446c48a",
    },
  },
];

const target = join(dirname(fileURLToPath(import.meta.url)), "../dist/grammars");
mkdirSync(target, { recursive: true });
const built = SOURCES.flatMap((source) => Object.keys(source.sha256).map((grammar) => buildGrammar(source, grammar)));
for (const name of readdirSync(target)) if (!built.includes(name)) rmSync(join(target, name));

/** Builds one grammar, unless it is current, and returns the name of its file. */
function buildGrammar({ name, anchor, file, sha256: expected }, grammar) {
  const built = `${grammar}.wasm.br`;
  const path = join(target, built);
  if (existsSync(path) && sha256(brotliDecompressSync(readFileSync(path))) === expected[grammar]) return built;
  const content = readFileSync(join(packageFolder(name, anchor), file(grammar)));
  if (sha256(content) !== expected[grammar])
    throw new Error(`The grammar ${grammar} of ${name} has another checksum than this build expects. Run npm install.`);
  // A process that loads the grammar during the build must see a complete file.
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }));
  renameSync(temporary, path);
  return built;
}

function packageFolder(name, anchor) {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/${anchor}`));
  } catch (cause) {
    throw new Error(`The npm package ${name} is missing. Run npm install.`, { cause });
  }
}

function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}
