import type { z } from "zod";
import { definitionOf } from "./zod-schema.ts";

/**
 * The wire speaks snake_case, the code camelCase. This is the one place that translates, by walking the schema, so that
 * the keys of free-form maps (a checkpoint's `context`) are never touched.
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

/** Validated wire data → what a service takes. */
export function toCamel<Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>): Camel<z.output<Schema>> {
  return rename(schema, value, camelKey, (key) => key) as Camel<z.output<Schema>>;
}

/** What a service returned → wire data, still to be validated. */
export function toWire(schema: z.ZodType, value: unknown): unknown {
  return rename(schema, value, (key) => key, camelKey);
}

export function camelKey(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function rename(schema: z.ZodType, value: unknown, target: (key: string) => string, source: (key: string) => string): unknown {
  if (value === undefined || value === null) return value;
  const def = definitionOf(schema);
  if (def.shape && typeof value === "object") {
    const renamed: Record<string, unknown> = {};
    for (const [key, field] of Object.entries(def.shape)) {
      const member = (value as Record<string, unknown>)[source(key)];
      if (member !== undefined) renamed[target(key)] = rename(field, member, target, source);
    }
    return renamed;
  }
  if (def.element && Array.isArray(value)) return value.map((item) => rename(def.element!, item, target, source));
  if (def.innerType) return rename(def.innerType, value, target, source);
  if (def.out) return rename(def.out, value, target, source);
  if (def.getter) return rename(def.getter(), value, target, source);
  if (def.options) {
    for (const option of def.options) {
      const candidate = rename(option, value, (key) => key, source);
      if (option.safeParse(candidate).success) return rename(option, value, target, source);
    }
  }
  return value;
}
