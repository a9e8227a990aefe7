import fc from "fast-check";
import type { JsonSchema } from "../../../src/http/example.ts";

/** Values that exist on the server, by the name of the field that takes them: they let a request reach the code behind the checks. */
export type Pools = Readonly<Record<string, readonly unknown[]>>;

export interface Grammar {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly pools: Pools;
}

/** Generates values that the schema accepts, most of them small, some at its limits. */
export function validValue(schema: JsonSchema, grammar: Grammar, name = "", depth = 0): fc.Arbitrary<unknown> {
  const pool = grammar.pools[name];
  const own = fromSchema(schema, grammar, name, depth);
  return pool ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...pool) }, { weight: 1, arbitrary: own }) : own;
}

function fromSchema(schema: JsonSchema, grammar: Grammar, name: string, depth: number): fc.Arbitrary<unknown> {
  if (typeof schema.$ref === "string") {
    const target = grammar.schemas[schema.$ref.split("/").at(-1)!];
    return target && depth < 4 ? validValue(target, grammar, name, depth + 1) : fc.constant({});
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const options = schema.anyOf ?? (schema.oneOf as readonly JsonSchema[] | undefined);
  if (options) return fc.oneof(...options.map((option) => validValue(option, grammar, name, depth + 1)));
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object":
      return objectOf(schema, grammar, depth);
    case "array": {
      const minLength = (schema.minItems as number | undefined) ?? 0;
      const items = validValue(schema.items ?? {}, grammar, name.replace(/s$/, ""), depth + 1);
      return fc.array(items, { minLength, maxLength: Math.min(schema.maxItems ?? 5, minLength + 4) });
    }
    case "integer":
      return fc.integer(range(schema));
    case "number":
      return fc.double({ ...range(schema), noNaN: true });
    case "boolean":
      return fc.boolean();
    case "string":
      return stringOf(schema);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objectOf(schema: JsonSchema, grammar: Grammar, depth: number): fc.Arbitrary<unknown> {
  const { properties, additionalProperties } = schema as JsonSchema & { additionalProperties?: JsonSchema | boolean };
  if (!properties)
    return fc.dictionary(fc.string({ minLength: 1, maxLength: 10 }), validValue(plain(additionalProperties), grammar, "", depth + 1), {
      maxKeys: 4,
    });
  const fields = Object.fromEntries(
    Object.entries(properties).map(([field, inner]) => [field, validValue(inner, grammar, field, depth + 1)]),
  );
  return fc.record(fields, { requiredKeys: [...(schema.required ?? [])] });
}

function plain(schema: JsonSchema | boolean | undefined): JsonSchema {
  return typeof schema === "object" ? schema : {};
}

function range({ minimum, maximum }: JsonSchema): { min: number; max: number } {
  const min = Math.max(minimum ?? -1_000, -2_147_483_648);
  return { min, max: Math.max(min, Math.min(maximum ?? 1_000, 2_147_483_647)) };
}

/** Repeated up to the limit of a field, each of these makes some careless pattern take quadratic time or more. */
const UNITS = [
  "a",
  "é ",
  "word ",
  "http://",
  "x:",
  "key=",
  "**?",
  "/a",
  "\n at ",
  "- ",
  "(",
  "{",
  '"',
  "/*",
  "password: ",
  "eyJ",
  "0",
  " ",
  "\n",
  "@",
  "=",
  "'",
];
/** Characters; the schema of file contents names no limit. */
const LONGEST = 200_000;

function stringOf({ format, pattern, minLength = 0, maxLength = LONGEST }: JsonSchema & { pattern?: string }): fc.Arbitrary<string> {
  if (format === "date-time")
    return fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("2100-01-01") }).map((date) => date.toISOString());
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  const limit = Math.max(minLength, Math.min(maxLength, 200));
  const length = Math.min(maxLength, LONGEST);
  return fc.oneof(
    { weight: 6, arbitrary: fc.string({ minLength, maxLength: limit }) },
    { weight: 3, arbitrary: fc.string({ unit: "grapheme", minLength, maxLength: Math.max(minLength, Math.floor(limit / 8)) }) },
    { weight: 1, arbitrary: fc.constantFrom(...UNITS).map((unit) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...UNITS).map((unit) => `${unit.repeat(Math.ceil(length / unit.length)).slice(0, length - 1)}!`),
    },
  );
}
