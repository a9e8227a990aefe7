import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAst } from "vitest/node";
import { readIgnoreRules } from "../../src/client/files/ignore-pattern.ts";
import { parseRecordFile } from "../../src/knowledge/record-file.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { matchGlob } from "../../src/stores/sqlite/projects/code/filter.ts";
import { redactForLog } from "../../src/telemetry/redact.ts";
import { globMatcher } from "../../src/text/glob.ts";
import { errorSignature, normaliseError } from "../../src/text/normalise-error.ts";
import { redactSecrets } from "../../src/text/redact.ts";
import { allowProblem } from "../../src/text/redact-allow.ts";
import { COMMAND_RULES } from "../../src/text/redact-commands.ts";
import { NAMED_RULES } from "../../src/text/redact-named.ts";
import { SECRET_RULES } from "../../src/text/redact-rules.ts";

/** Processor time of a piece of work in microseconds, the least of some tries: other programs can only make it longer. */
function work(run: () => unknown, tries = 1): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < tries; attempt++) {
    const began = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(began);
    least = Math.min(least, user + system);
  }
  return least;
}

/** Work on the long text below this says nothing about growth: quadratic work on it takes at least ten times as long. */
const NEGLIGIBLE_US = 10_000;
const LONG_CHARS = 16_000;

/**
 * Returns how the work grows when the text becomes eight times as long: 8 for linear work, 64 for quadratic. 0 where it is
 * negligible. A short text goes first, so that exponential work is found before it would never end.
 */
function growth(run: (text: string) => unknown, make: (chars: number) => string): number {
  if (work(() => run(make(500))) > 100_000 && work(() => run(make(500)), 3) > 100_000) return Number.POSITIVE_INFINITY;
  const long = make(LONG_CHARS);
  if (work(() => run(long)) < NEGLIGIBLE_US) return 0;
  const short = make(LONG_CHARS / 8);
  return (
    work(() => run(long), 3) /
    Math.max(
      work(() => run(short), 5),
      NEGLIGIBLE_US / 64,
    )
  );
}

/** Between 8 and 64, nearer to the first on a logarithmic scale than to the second. */
const LINEAR = 20;

const repeat = (unit: string, chars: number) => unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars);

describe("an attacker who sends text that patterns begin to match everywhere", () => {
  const hints = [...SECRET_RULES, ...COMMAND_RULES, ...NAMED_RULES].flatMap(({ hints: all, pattern }) => [
    ...all,
    ...literals(pattern.source),
  ]);
  const units = [
    ...new Set([...hints, "a", "A-", "a.", "://a:", "a://a:a", "+A", "x1Q~", "-u a:", " -p", "password=", '"\\"', '\\"', "“", "./-"]),
  ];

  it.each([
    ["redaction of stored texts", (text: string) => redactSecrets(text)],
    ["redaction of log lines", (text: string) => redactForLog(text)],
    ["normalisation of errors", (text: string) => [normaliseError(text), errorSignature(text)]],
  ])("cannot make %s take more than linear time", (_, run) => {
    const slow = units.flatMap((unit) =>
      ["!", "\n"].flatMap((end) => {
        const grown = growth(run, (chars) => repeat(unit, chars) + end);
        return grown > LINEAR ? [{ unit, end, grown }] : [];
      }),
    );
    expect(slow).toEqual([]);
  });

  it.each(["login ", "curl -u ", "mysql -x "])("cannot block the server with a file full of %j", (unit) => {
    const chars = 200_000;
    const plain = work(() => redactSecrets(repeat("logon ", chars)), 5);
    expect(work(() => redactSecrets(repeat(unit, chars)), 5)).toBeLessThan(4 * plain);
  });

  it("cannot make a request's path block the log", () => {
    // 40 such requests blocked a server for 22 s.
    expect(growth(redactForLog, (chars) => `{"path":"/${"a".repeat(chars)}"}`)).toBeLessThan(LINEAR);
    expect(growth(redactForLog, (chars) => `{"path":"/${"a://".repeat(chars / 4)}"}`)).toBeLessThan(LINEAR);
  });

  it("cannot import a CSV file with more columns than the limit", () => {
    const header = Array.from({ length: LIMITS.importColumns + 1 }, (_, index) => `c${index}`).join(",");
    expect(() => parseRecordFile(header, "csv")).toThrow(/has 501 columns; the limit is 500/);
  });
});

describe("a read key that sends globs", () => {
  const globs = [
    "**?**?**?**?**?!",
    "*a".repeat(100),
    "{*,**}".repeat(40),
    "**/".repeat(100),
    "?*".repeat(200),
    "{a,{b,{c,*}}}*".repeat(20),
  ];

  it.each(globs.map((glob) => [glob.slice(0, 20), glob]))("cannot block the server with %s", (_, glob) => {
    for (const unit of ["a", "a/", "ab", "é"]) expect(growth(globMatcher(glob), (chars) => `${repeat(unit, chars)}#`)).toBeLessThan(LINEAR);
  });

  it("gets an answer for the glob that took 28 s on 20 paths", () => {
    const matches = globMatcher("**?**?**?**?**?!");
    for (let path = 0; path < 20; path++) expect(matches(`src/components/deep/folder/with/a/long/name/file-${path}.test.tsx`)).toBe(false);
  });
});

it("a cloned repository cannot block the walk with its .gitignore", () => {
  const rules = ["*a".repeat(200), "**/".repeat(200), "[ab]*".repeat(100), "?*".repeat(300), "a*".repeat(300)];
  for (const [rule] of readIgnoreRules(rules.join("\n")).map((one) => [one] as const))
    expect(
      growth(
        (text) => rule.matches(text, text),
        (chars) => `${"a".repeat(chars)}#`,
      ),
    ).toBeLessThan(LINEAR);
});

it("refuses allow patterns that could hang on a secret", () => {
  for (const pattern of ["(a+)+$", "(a|a)*$", "(a?){40}", "(?:x*y*)+", ".*.*.*", "(a)\\1", "("])
    expect(allowProblem(pattern), pattern).toBeTypeOf("string");
  for (const pattern of ["^sk_test_", "^sk_(?:test|live)_[a-z]+$", "^[0-9a-f]{32}$", "(?:ab){3}", "^a.*z$", "\\(a\\)+"])
    expect(allowProblem(pattern), pattern).toBeUndefined();
});

it("every regular expression of the program takes linear time on text made of its own parts", () => {
  const slow = expressions().flatMap(({ file, expression }) => {
    const parts = [...new Set([...literals(expression.source), ..."aA0 \t\n./-_:@\"'\\(=,#*“é"])];
    const run = (text: string) => (expression.global ? text.replace(expression, "") : expression.exec(text));
    for (const unit of parts)
      for (const start of ["", "x"]) {
        const grown = growth(run, (chars) => `${start}${repeat(unit, chars)}\u0000`);
        if (grown > LINEAR) return [{ file, expression: String(expression), start, unit, grown }];
      }
    return [];
  });
  expect(slow).toEqual([]);
});

/** Returns the regular expressions in the built program, and the ones that rules build. */
function expressions(): { readonly file: string; readonly expression: RegExp }[] {
  const root = resolve(import.meta.dirname, "../../dist");
  const found = new Map<string, { file: string; expression: RegExp }>();
  const add = (file: string, expression: RegExp) => found.set(String(expression), { file, expression });
  const visit = (file: string, node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("regex" in node && node.regex) {
      const { pattern, flags } = node.regex as { pattern: string; flags: string };
      add(file, new RegExp(pattern, flags));
    }
    for (const inner of Object.values(node)) visit(file, inner);
  };
  // The bundle repeats these modules, and contains zod.
  for (const file of readdirSync(root, { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".js") && !file.startsWith("bundle")) visit(file, parseAst(readFileSync(join(root, file), "utf8")));
  for (const { kind, pattern } of [...SECRET_RULES, ...COMMAND_RULES, ...NAMED_RULES]) add(`rule ${kind}`, pattern);
  expect(found.size).toBeGreaterThan(200);
  return [...found.values()];
}

/** Runs of plain characters in a pattern's source: what a text needs to make the pattern begin. */
function literals(source: string): string[] {
  return [...source.matchAll(/(?:[A-Za-z0-9 _:@=<>"'#%&~,;!/-]|\\[./+*?$^|()[\]{}\\-])+/g)]
    .map(([run]) => run.replace(/\\(.)/g, "$1"))
    .filter((run) => run.length < 40)
    .slice(0, 8);
}

describe("an attacker who sends a costly glob to a large index", () => {
  it("cannot keep other calls waiting while the paths are matched", async () => {
    let seed = 1;
    const letter = () => {
      seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
      return (seed >> 16) & 1 ? "a" : "b";
    };
    const paths = Array.from({ length: 40 }, () => Array.from({ length: 1_000 }, letter).join(""));
    const folder = mkdtempSync(join(tmpdir(), "cairn-glob-"));
    const database = await openSqlite({ path: join(folder, "index.db") });
    onTestFinished(() => {
      database.close();
      rmSync(folder, { recursive: true, force: true });
    });
    await database.write((tx) => {
      tx.exec("CREATE TABLE indexed_files (file_key INTEGER PRIMARY KEY, file_path TEXT NOT NULL)");
      for (const path of paths) tx.run("INSERT INTO indexed_files (file_path) VALUES (?)", path);
    });
    let turns = 0;
    const ticking = setInterval(() => turns++, 1);
    try {
      await matchGlob(async () => database, { glob: `*a${"?".repeat(480)}` });
    } finally {
      clearInterval(ticking);
    }
    expect(turns).toBeGreaterThan(10);
  });
});
