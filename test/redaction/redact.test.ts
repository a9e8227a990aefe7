import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactFields, redactor, redactSecrets, secretKinds } from "../../src/text/redact.ts";
import { harmlessTexts } from "./harmless.ts";
import { plantedSecrets } from "./planted.ts";

describe("secrets", () => {
  it("are recognised in more than thirty kinds, each of which is planted here", () => {
    expect(new Set(plantedSecrets(1).map(({ kind }) => kind))).toEqual(new Set(secretKinds()));
    expect(secretKinds().length).toBeGreaterThanOrEqual(30);
  });

  it.each(plantedSecrets(7))("of the kind $kind are taken out", ({ kind, text, secret }) => {
    const { text: clean, found } = redactSecrets(text);
    expect(clean).toContain(`[redacted:${kind}]`);
    expect(found).toEqual([{ kind, count: 1 }]);
    for (const line of secret.split("\n")) expect(clean).not.toContain(line);
  });

  it("are taken out whatever they are made of", () => {
    for (let seed = 100; seed < 160; seed++)
      for (const { kind, text, secret } of plantedSecrets(seed))
        expect(redactSecrets(text).text.includes(secret), `${kind}, seed ${seed}`).toBe(false);
  });

  it("are taken out of the middle of other text, all of them, and counted", () => {
    const some = plantedSecrets(3).filter(({ kind }) => kind === "github-token" || kind === "stripe-key");
    const { text, found } = redactSecrets(some.map(({ text: one }) => `before\n${one}\nafter`).join("\n\n"));
    for (const { secret } of some) expect(text).not.toContain(secret);
    expect(found).toEqual([
      { kind: "github-token", count: 2 },
      { kind: "stripe-key", count: 1 },
    ]);
    expect(text.match(/before/g)).toHaveLength(3);
  });

  it("that are allowed stay", () => {
    const [planted] = plantedSecrets(5).filter(({ kind }) => kind === "stripe-key");
    const redact = redactor({ allow: ["^sk_live_a1B2"] });
    expect(redact(planted!.text)).toEqual({ text: planted!.text, found: [] });
    expect(() => redactor({ allow: ["("] })).toThrow(/redaction.allow.*not a regular expression/);
  });
});

describe("what is no secret", () => {
  it("stays unchanged in 200 harmless texts: code, hashes, ids, addresses, styles, queries, stack traces", () => {
    const texts = harmlessTexts();
    expect(new Set(texts).size).toBeGreaterThanOrEqual(200);
    expect(texts.filter((text) => redactSecrets(text).text !== text).map((text) => redactSecrets(text).text)).toEqual([]);
  });

  it("is touched less than once in a thousand lines of ordinary code and prose", () => {
    const root = resolve(import.meta.dirname, "../..");
    const sources = ["node_modules/zod", "node_modules/hono", "node_modules/pg", "node_modules/vitest", "src", "docs"];
    let lines = 0;
    let found = 0;
    for (const file of sources.flatMap((folder) => filesUnder(join(root, folder)))) {
      const text = readFileSync(file, "utf8");
      lines += text.split("\n").length;
      found += redactSecrets(text).found.reduce((sum, { count }) => sum + count, 0);
    }
    expect(lines).toBeGreaterThan(50_000);
    expect(found).toBeLessThan(lines / 1_000);
  });
});

describe("redaction", () => {
  it("of a text without secrets gives it back, and of its own marks too", () => {
    const clean = plantedSecrets(11).map(({ text }) => redactSecrets(text).text);
    for (const text of clean) expect(redactSecrets(text).text).toBe(text);
  });

  it("never fails and never hides what a person wrote around a secret", () => {
    const secret = plantedSecrets(13).find(({ kind }) => kind === "github-token")!.secret;
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.string({ maxLength: 200 }), (before, after) => {
        const { text } = redactSecrets(`${before}\n${secret}\n${after}`);
        expect(text).not.toContain(secret);
        expect(text.isWellFormed()).toBe(`${before}${after}`.isWellFormed());
      }),
    );
  });
});

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesUnder(path);
    return /\.([cm]?[jt]s|md)$/.test(entry.name) && statSync(path).size < 300_000 ? [path] : [];
  });
}

describe("the fields of a record", () => {
  const { secret, text } = plantedSecrets(9).find(({ kind }) => kind === "github-token")!;
  const limits = { title: 200, labels: 200, facts: { key: 50, value: 200 } };

  it("lose their secrets in texts, lists and maps, which are counted by field", () => {
    const record = { title: text, labels: ["plain", text], facts: { branch: "main", password: "hunter2-Secret" }, other: text };
    const { fields, redacted } = redactFields(record, limits, redactSecrets);
    expect(JSON.stringify({ ...fields, other: "" })).not.toContain(secret);
    expect(fields.facts).toMatchObject({ branch: "main" });
    expect(fields.facts.password).not.toContain("hunter2");
    expect(fields.other).toBe(text); // a field without a limit is not free text
    expect(redacted).toMatchObject([
      { field: "title", kind: "github-token", count: 1 },
      { field: "labels", kind: "github-token", count: 1 },
      { field: "facts", count: 1 },
    ]);
  });

  it("stay within their limits where a placeholder is longer than the secret", () => {
    const { fields } = redactFields({ title: text }, { title: 10 }, redactSecrets);
    expect(fields.title.length).toBeLessThanOrEqual(10);
  });

  it("keep both pairs of a map whose keys are equal without their secrets", () => {
    const other = plantedSecrets(10).find(({ kind }) => kind === "github-token")!.secret;
    const { fields } = redactFields({ facts: { [secret]: "one", [other]: "two" } }, limits, redactSecrets);
    expect(Object.values(fields.facts)).toEqual(["one", "two"]);
  });
});
