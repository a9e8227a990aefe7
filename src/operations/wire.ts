import type { z } from "zod";
import { trimTrailing } from "../text/trim-trailing.ts";
import { definitionOf, unwrap } from "./zod-schema.ts";

/**
 * The wire speaks snake_case, the code camelCase. This is the one place that translates, by the schema, so that the keys of free-form
 * maps (a checkpoint's `context`) are never touched. A schema is read once: its first use builds the translator of all its fields.
 */

type CamelKey<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelKey<Tail>>}` : K;

/** The camelCase form of a wire type; maps with free keys stay as they are. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { [K in keyof T as CamelKey<K>]: Camel<T[K]> }
    : T;

/** Translates validated wire data to the input of a service. */
export function toCamel<Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>): Camel<z.output<Schema>> {
  return translatorOf(schema)(value, TO_CAMEL) as Camel<z.output<Schema>>;
}

/** Translates the answer of a service to wire data, which is still to be validated. */
export function toWire(schema: z.ZodType, value: unknown): unknown {
  return translatorOf(schema)(value, TO_WIRE);
}

/**
 * Reads values as a caller means them where only one reading is possible: agents send `"5"` for 5, one string for a list, a number as a
 * context value, and JSON in a string. Everything else stays as it is, and the schema refuses it with a reason.
 */
export function coerceInput(schema: z.ZodObject, raw: unknown): unknown {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return raw;
  const readers = readersOf(schema);
  let coerced: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(raw)) {
    const read = readers.get(name)?.(value) ?? value;
    if (read !== value) coerced = { ...(coerced ?? raw), [name]: read };
  }
  return coerced ?? raw;
}

type Reader = (value: unknown) => unknown;

/** The readers of each schema, which are made once. */
const readersBySchema = new WeakMap<z.ZodObject, ReadonlyMap<string, Reader>>();

function readersOf(schema: z.ZodObject): ReadonlyMap<string, Reader> {
  const known = readersBySchema.get(schema);
  if (known) return known;
  const readers = new Map<string, Reader>();
  for (const [name, field] of Object.entries(schema.shape)) {
    const reader = name === "project_path" ? withoutTrailingSlash : readerOf(field as z.ZodType);
    if (reader) readers.set(name, reader);
  }
  readersBySchema.set(schema, readers);
  return readers;
}

function readerOf(schema: z.ZodType): Reader | undefined {
  const { type, element, valueType, entries } = definitionOf(unwrap(schema));
  const holdsText = (inner: z.ZodType | undefined) => inner !== undefined && definitionOf(unwrap(inner)).type === "string";
  if (type === "number" || type === "int") return (value) => (typeof value === "string" && NUMBER.test(value) ? Number(value) : value);
  if (type === "boolean") return (value) => (value === "true" ? true : value === "false" ? false : value);
  if (entries)
    return (value) => (typeof value === "string" && Object.values(entries).find((one) => one === value.trim().toLowerCase())) || value;
  if (type === "array" && holdsText(element)) return readList;
  return type === "record" && holdsText(valueType) ? readPairs : undefined;
}

const NUMBER = /^\s*-?\d+(?:\.\d+)?\s*$/;

function readList(value: unknown): unknown {
  const list = typeof value === "string" ? (parseJsonText(value, "[") ?? value.split(",").flatMap((item) => item.trim() || [])) : value;
  return Array.isArray(list) && list.some((item) => typeof item === "number") ? list.map(scalarText) : list;
}

function readPairs(value: unknown): unknown {
  const pairs = typeof value === "string" ? (parseJsonText(value, "{") ?? value) : value;
  if (typeof pairs !== "object" || pairs === null || !Object.values(pairs).some((item) => scalarText(item) !== item)) return pairs;
  return Object.fromEntries(Object.entries(pairs).map(([key, item]) => [key, scalarText(item)]));
}

function scalarText(value: unknown): unknown {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
}

/** Parses a string that contains a JSON list or object. Schemas drop a field named `__proto__` silently, so a text with it stays a text. */
function parseJsonText(text: string, opening: "[" | "{"): unknown {
  if (!text.trimStart().startsWith(opening) || text.includes("__proto__")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutTrailingSlash(path: unknown): unknown {
  if (typeof path !== "string" || !/.[\\/]$/.test(path) || /^[A-Za-z]:[\\/]$/.test(path)) return path;
  return trimTrailing(path, "\\/");
}

export function camelKey(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names under which the fields of a value are read and written. */
interface Direction {
  readonly from: "wire" | "camel";
  readonly to: "wire" | "camel";
}

const TO_CAMEL: Direction = { from: "wire", to: "camel" };
const TO_WIRE: Direction = { from: "camel", to: "wire" };

type Translate = (value: unknown, direction: Direction) => unknown;

const translators = new WeakMap<z.ZodType, Translate>();

function translatorOf(schema: z.ZodType): Translate {
  let translate = translators.get(schema);
  if (!translate) {
    const build = buildTranslator(schema);
    translate = (value, direction) => (value === undefined || value === null ? value : build(value, direction));
    translators.set(schema, translate);
  }
  return translate;
}

function buildTranslator(schema: z.ZodType): Translate {
  const { shape, element, innerType, out, getter, options } = definitionOf(schema);
  if (shape) return objectTranslator(shape);
  if (element) {
    const item = translatorOf(element);
    return (value, direction) => (Array.isArray(value) ? value.map((one) => item(one, direction)) : value);
  }
  const inner = innerType ?? out;
  if (inner) return translatorOf(inner);
  if (getter) return (value, direction) => translatorOf(getter())(value, direction); // a lazy schema may refer to itself
  if (options) return unionTranslator(options);
  return (value) => value;
}

function objectTranslator(shape: Readonly<Record<string, z.ZodType>>): Translate {
  const fields = Object.entries(shape).map(([wire, field]) => ({ wire, camel: camelKey(wire), translate: translatorOf(field) }));
  return (value, direction) => {
    if (typeof value !== "object") return value;
    const translated: Record<string, unknown> = {};
    for (const field of fields) {
      const member = (value as Record<string, unknown>)[field[direction.from]];
      if (member !== undefined) translated[field[direction.to]] = field.translate(member, direction);
    }
    return translated;
  };
}

/** Translates by the first schema of a union that accepts the value. */
function unionTranslator(options: readonly z.ZodType[]): Translate {
  return (value, { from, to }) => {
    const option = options.find((one) => one.safeParse(translatorOf(one)(value, { from, to: "wire" })).success);
    return option ? translatorOf(option)(value, { from, to }) : value;
  };
}
