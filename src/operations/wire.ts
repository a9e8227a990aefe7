import type { z } from "zod";
import { definitionOf } from "./zod-schema.ts";

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
