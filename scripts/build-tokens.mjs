#!/usr/bin/env node
// Writes dist/tokens/o200k.bin: a filter of the o200k vocabulary, by which texts are split into tokens without the vocabulary (2 MB).
// The vocabulary comes from the npm package gpt-tokenizer, which is needed for the build only. See NOTICE for authors and licences.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "dist/tokens/o200k.bin");
/** Checksum of the result: another vocabulary or another hash function must be noticed. */
const SHA256 = "35da42e7efb00f9719d98ab5a36eaac281eaf7fa74202694c4467c85738eaea3";
/** ASCII tokens after this rank are rare, and left out for the size. */
const ASCII_RANKS = 140_000;
const PIECE = /^[^\r\n\p{L}\p{N}]?[\p{L}\p{M}']+$|^ ?[^\s\p{L}\p{N}]+[\r\n/]*$/u;

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
if (!existsSync(target) || digest(readFileSync(target)) !== SHA256) {
  const filter = await import("../dist/text/estimate-tokens.js");
  const vocabulary = join(dirname(createRequire(import.meta.url).resolve("gpt-tokenizer/package.json")), "esm/bpeRanks/o200k_base.js");
  const { default: ranks } = await import(vocabulary);
  const tokens = ranks.flatMap((token, rank) => (typeof token === "string" && isListed(token, rank, filter) ? [token] : []));
  const ascii = build(tokens.filter(isAscii), filter.ASCII_BITS, filter);
  const other = build(
    tokens.filter((token) => !isAscii(token)),
    filter.OTHER_BITS,
    filter,
  );
  const packed = Uint8Array.from({ length: ascii.length / 2 }, (_, at) => ascii[2 * at] | (ascii[2 * at + 1] << 4));
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32LE(packed.length, 0);
  sizes.writeUInt32LE(other.length, 4);
  const bytes = Buffer.concat([sizes, packed, other]);
  if (digest(bytes) !== SHA256) throw new Error(`dist/tokens/o200k.bin has the checksum ${digest(bytes)}, not the expected one.`);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, bytes);
}

function isAscii(token) {
  return /^[\0-\x7f]*$/.test(token);
}

function isListed(token, rank, { MAX_UNITS, MAX_CJK_UNITS, CJK, UNLISTED_SCRIPT }) {
  if (token.length < 2 || !PIECE.test(token) || UNLISTED_SCRIPT.test(token)) return false;
  if (isAscii(token) && rank >= ASCII_RANKS) return false;
  return token.length <= (CJK.test(token) ? MAX_CJK_UNITS : MAX_UNITS);
}

/** Builds an xor filter by peeling: removes tokens that own a slot alone, then fills the slots in reverse order. */
function build(tokens, bits, { hashPiece, slots, fingerprint }) {
  const hashes = tokens.map(hashPiece);
  for (let third = Math.ceil((tokens.length * 1.23 + 32) / 3 / 2) * 2; ; third += 2) {
    const order = peel(hashes, third, slots);
    if (!order) continue;
    const table = new Uint8Array(3 * third);
    for (const { token, slot } of order.reverse()) {
      const [a, b] = hashes[token];
      const others = slots(a, b, third).filter((one) => one !== slot);
      table[slot] = others.reduce((value, one) => value ^ table[one], fingerprint(a, b, bits));
    }
    return table;
  }
}

function peel(hashes, third, slots) {
  const count = new Uint32Array(3 * third);
  const sum = new Uint32Array(3 * third); // the numbers of the tokens in a slot, combined by xor
  const change = (token, by) => {
    const [a, b] = hashes[token];
    for (const slot of slots(a, b, third)) {
      count[slot] += by;
      sum[slot] ^= token;
    }
  };
  for (let token = 0; token < hashes.length; token++) change(token, 1);
  const alone = [...count.keys()].filter((slot) => count[slot] === 1);
  const order = [];
  for (let slot = alone.pop(); slot !== undefined; slot = alone.pop()) {
    if (count[slot] !== 1) continue;
    const token = sum[slot];
    order.push({ token, slot });
    change(token, -1);
    const [a, b] = hashes[token];
    alone.push(...slots(a, b, third).filter((one) => count[one] === 1));
  }
  return order.length === hashes.length ? order : undefined;
}
