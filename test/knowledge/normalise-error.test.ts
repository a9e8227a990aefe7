import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorSignature, normaliseError } from "../../src/text/normalise-error.ts";

describe("an error's text without what changes each time", () => {
  it.each([
    ["2026-01-02T03:04:05.678Z ERROR pool exhausted", "# ERROR pool exhausted"],
    ["2026-01-02 03:04:05,678 pool", "# pool"],
    ["[12:34:56.789] worker 17 died", "[#] worker # died"],
    ["segfault at 0x7ffd12ab in thread 4", "segfault at # in thread #"],
    ["job 6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c failed", "job # failed"],
    ["commit 9f8e7d6c5b4a gone", "commit # gone"],
    ["ENOENT: no such file, open '/home/me/app/config.json'", "ENOENT: no such file, open 'config.json'"],
    ["cannot open C:\\Users\\me\\app\\x.txt now", "cannot open x.txt now"],
    ["fetch https://example.com/a/b?x=1 failed", "fetch b?x=# failed"],
    ["    at load (/srv/app/src/db.ts:10:20)", "at load (db.ts:#)"],
    ['File "/usr/lib/python3/x.py", line 12, in f', 'File "x.py", line #, in f'],
    ["took 12.5 s, 3,000 rows, -4 left", "took # s, # rows, # left"],
    ["\u001b[31mError\u001b[0m: boom", "Error: boom"],
    ["utf8 and sha256 stay, so does v2", "utf8 and sha256 stay, so does v2"],
    ["a  b \r\n  c", "a b\nc"],
    ["", ""],
  ])("%j becomes %j", (text, normal) => {
    expect(normaliseError(text)).toBe(normal);
  });

  it("is the same when made twice", () => {
    const piece = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom(
        "/srv/a/b.ts:1:2",
        "0xdeadbeef",
        "#",
        ":",
        ",",
        "1.5",
        "2026-01-02T03:04:05Z",
        "'x y'",
        "C:\\a\\b",
        " ",
        "\n",
        "-1",
        "+",
        "/",
      ),
      fc.uuid(),
      fc.integer().map(String),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const once = normaliseError(pieces.join(""));
        expect(normaliseError(once)).toBe(once);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is quick, whatever is pasted", () => {
    for (const text of [
      "/a".repeat(10_000),
      "a".repeat(20_000),
      "0123456789abcdef".repeat(1_250),
      "'".repeat(20_000),
      "1,".repeat(10_000),
      "/".repeat(20_000),
    ])
      expect(errorSignature(text).length).toBeLessThanOrEqual(64);
  });
});

describe("an error's signature", () => {
  const message = fc.constantFrom("Cannot read properties of undefined", "connection refused", "файл не найден");

  it("is the same for two occurrences of one error", () => {
    const occurrence = fc.record({
      time: fc.date({ noInvalidDate: true, min: new Date("1990-01-01"), max: new Date("2090-01-01") }),
      line: fc.nat(99_999),
      folder: fc.constantFrom("/srv/app", "/home/me/work", "C:\\src"),
      id: fc.uuid(),
      address: fc.nat(2 ** 31).map((value) => `0x${value.toString(16)}`),
      value: fc.stringMatching(/^[a-z ]{0,10}$/),
    });
    const write = (text: string, { time, line, folder, id, address, value }: typeof occurrence extends fc.Arbitrary<infer T> ? T : never) =>
      `${time.toISOString()} TypeError: ${text} '${value}' in job ${id} at ${address}\n    at load (${folder}/db.ts:${line}:${line % 80})\n    at run${line} (x.ts:1:1)`;
    fc.assert(
      fc.property(message, occurrence, occurrence, (text, one, other) => {
        expect(errorSignature(write(text, one))).toBe(errorSignature(write(text, other)));
      }),
      { numRuns: 500 },
    );
  });

  it("distinguishes errors, and is empty where nothing identifies an error", () => {
    expect(errorSignature("TypeError: a is not a function")).not.toBe(errorSignature("TypeError: a is not iterable"));
    expect(errorSignature("KeyError: 'a'")).not.toBe(errorSignature("ValueError: 'a'"));
    for (const nothing of ["", "  ", "42", "0x1f\n12:30:00"]) expect(errorSignature(nothing)).toBe("");
  });
});
