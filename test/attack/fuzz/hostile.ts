import fc from "fast-check";

/** JSON text that is written as it is: some hostile values have no JavaScript form. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Writes JSON, with raw parts as they are. */
export function toJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}:${toJson(inner)}`)
      .join(",")}}`;
  return JSON.stringify(value) ?? "null";
}

const NUMBERS = ["1e400", "-1e400", "9007199254740993", "-9223372036854775809", "1E-400", "-0", "0.1e1", "2147483648", "1.5", "-1", "1e21"];
const RAW = [
  ...NUMBERS,
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"a\\u0000b"',
  '"\\u001b[31m\\u0007\\b\\u007f"',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"toString":1,"valueOf":2,"then":3,"toJSON":4,"length":-1}',
  '{"a":1,"a":2}',
  "[".repeat(500) + "]".repeat(500),
  `${'{"a":'.repeat(500)}1${"}".repeat(500)}`,
  "NaN",
  "undefined",
  "'single'",
  "0x10",
  "01",
  "{",
  "]",
].map((text) => new RawJson(text));

/** Texts that make a careless pattern, parser or path join slow or wrong. */
const TEXTS = [
  "",
  " ",
  "\t\n\r",
  "\u202e\u200b\ufeff",
  "../../../../etc/passwd",
  "/a/../b",
  "/a//b/",
  "C:\\Windows\\win.ini",
  "/proc/self/environ",
  "/dev/zero",
  "file:///etc/passwd",
  "'; DROP TABLE checkpoints; --",
  '" OR 1=1 --',
  "%00%2e%2e%2f",
  "$" + "{jndi:ldap://127.0.0.1:1/x}",
  "{{7*7}}<script>alert(1)</script>",
  'NEAR(a b) AND NOT * "unclosed OR (((',
  '"'.repeat(1_001),
  "a*".repeat(250),
  "**?".repeat(160),
  `${"**?".repeat(5)}!`,
  `${"*a".repeat(200)}b`,
  `{${"a,".repeat(200)}}`,
  "{{{{{{{{{{a,b},c},d},e},f},g},h},i},j},k}",
  `!${"[a-z]".repeat(90)}`,
  "[".repeat(400),
  "\\".repeat(401),
  `${"a".repeat(400)}!`,
  "(a+)+$".repeat(50),
  `https://${"a".repeat(2_000)}`,
  "http://".repeat(500),
  `${"x:".repeat(1_500)}@`,
  `password=${"a".repeat(5_000)}`,
  `${"key=".repeat(2_000)}`,
  `-----BEGIN RSA PRIVATE KEY-----${"A".repeat(5_000)}`,
  `eyJ${"a".repeat(3_000)}.`,
  `${"\n    at x (y:1:1)".repeat(300)}`,
  "é".repeat(10_000),
  "\u0301".repeat(3_000),
  "x".repeat(100_000),
  "word ".repeat(20_000),
  "2026-13-45T99:99:99Z",
  "+275760-09-13T00:00:00.001Z",
  "2026-01-01T00:00:00+99:99",
  "cairn_000000000000_nonsense",
  "postgres://127.0.0.1:1/none",
  "sqlite",
];

/** Values of every wrong kind. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 3, arbitrary: fc.constantFrom(...RAW) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null], 0, -1) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 100 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 5 }) },
  { weight: 1, arbitrary: fc.constantFrom(...TEXTS).map((text) => Array.from({ length: 30 }, () => text.slice(0, 2_000))) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 3_000 }).map((count) => Array.from({ length: count }, (_, index) => index)) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 100, max: 3_000 })
      .map((count) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))),
  },
);

const FIELD_NAMES = ["__proto__", "constructor", "toString", "project_path", "project_id", "id", "scope", "", "\u0000", "a".repeat(5_000)];

/** Changes a valid input: replaces, removes, doubles or adds fields. */
export function mutate(input: Record<string, unknown>): fc.Arbitrary<unknown> {
  const fields = Object.keys(input);
  const anyField = fc.constantFrom(...fields, "query");
  const replace = fc.tuple(anyField, hostileValue).map(([field, value]) => ({ ...input, [field]: value }));
  const replaceAll = fc
    .array(hostileValue, { minLength: fields.length, maxLength: fields.length })
    .map((values) => Object.fromEntries(fields.map((field, index) => [field, values[index]])));
  const remove = anyField.map((field) => Object.fromEntries(Object.entries(input).filter(([name]) => name !== field)));
  const add = fc
    .tuple(fc.constantFrom(...FIELD_NAMES), hostileValue)
    .map(
      ([field, value]) => new RawJson(`{${JSON.stringify(field)}:${toJson(value)}${fields.length ? `,${toJson(input).slice(1)}` : "}"}`),
    );
  const twice = fc
    .tuple(anyField, hostileValue)
    .map(
      ([field, value]) => new RawJson(`${toJson(input).slice(0, -1)}${fields.length ? "," : ""}${JSON.stringify(field)}:${toJson(value)}}`),
    );
  return fc.oneof(
    { weight: 6, arbitrary: replace },
    { weight: 1, arbitrary: replaceAll },
    { weight: 1, arbitrary: remove },
    { weight: 2, arbitrary: add },
    { weight: 1, arbitrary: twice },
    { weight: 1, arbitrary: hostileValue },
  );
}
