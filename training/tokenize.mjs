// Chooses the student's extra words and tokenizes both sides of every pair with them, exactly as static.ts will.
// Usage: tokenize.mjs PAIRS.jsonl OUTPUT_PREFIX  (needs `npm run build`)
// Writes PREFIX.words.json, PREFIX.vocab.json, PREFIX.tokens.u16 and PREFIX.lengths.u32 (per pair: ask, then text, then name).
import { closeSync, createReadStream, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { STATIC_TOKENS, splitIdentifiers } from "../dist/embedders/local/static.js";
import { wordPiece } from "../dist/embedders/local/wordpiece.js";

const EXTRA_WORDS = 9_000;
const [pairsFile, prefix] = process.argv.slice(2);
const file = JSON.parse(readFileSync(new URL("../dist/models/minilm/tokenizer.json", import.meta.url), "utf8"));
const pairs = () => createInterface({ input: createReadStream(pairsFile) });

// Words that BERT breaks into pieces although many packages use them: numpy, json, async, tokenizer ...
const base = wordPiece(file);
const packagesUsing = new Map();
for await (const line of pairs()) {
  const { ask, text, package: from } = JSON.parse(line);
  const words =
    splitIdentifiers(`${ask} ${text}`)
      .toLowerCase()
      .match(/[a-z][a-z0-9]{2,19}/g) ?? [];
  for (const word of new Set(words)) {
    const use = packagesUsing.get(word);
    if (use === undefined) packagesUsing.set(word, { count: 1, packages: new Set([from]) });
    else {
      use.count++;
      if (use.packages.size < 50) use.packages.add(from);
    }
  }
}
const words = [...packagesUsing]
  .filter(([word, use]) => use.count >= 20 && use.packages.size >= 5 && base.pieces(word, 9).length > 1)
  .sort((a, b) => b[1].count - a[1].count)
  .slice(0, EXTRA_WORDS)
  .map(([word]) => word);
writeFileSync(`${prefix}.words.json`, JSON.stringify(words));

const first = Object.keys(file.model.vocab).length;
const vocab = { ...file.model.vocab, ...Object.fromEntries(words.map((word, index) => [word, first + index])) };
writeFileSync(`${prefix}.vocab.json`, JSON.stringify(vocab));
const student = wordPiece({ ...file, model: { ...file.model, vocab } });
const tokens = openSync(`${prefix}.tokens.u16`, "w");
const lengths = [];
for await (const line of pairs()) {
  const { ask, text, name } = JSON.parse(line);
  for (const side of [ask, text, name]) {
    const ids = Uint16Array.from(student.pieces(splitIdentifiers(side), STATIC_TOKENS));
    writeSync(tokens, ids);
    lengths.push(ids.length);
  }
}
closeSync(tokens);
writeFileSync(`${prefix}.lengths.u32`, Uint32Array.from(lengths));
console.log(`${lengths.length / 3} pairs, ${words.length} extra words, such as ${words.slice(0, 40).join(" ")}`);
