import type { z } from "zod";

/** Zod's own description of a schema: the one place that reads it, since zod does not type it. */
export interface SchemaDefinition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  /** Inside `optional`, `default` and the like. */
  readonly innerType?: z.ZodType;
  /** The two sides of a `pipe`. */
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  /** Of a `lazy` schema. */
  readonly getter?: () => z.ZodType;
  /** The choices of an `enum`, and of a `literal`. */
  readonly entries?: Readonly<Record<string, string>>;
  readonly values?: readonly unknown[];
  readonly defaultValue?: unknown;
}

/** Returns the definition of a schema. */
export function definitionOf(schema: z.ZodType): SchemaDefinition {
  return schema._zod.def as unknown as SchemaDefinition;
}

/** Returns the schema of a value that is present: inside `optional` and `default`, and of a `pipe` its input. */
export function unwrap(schema: z.ZodType): z.ZodType {
  const { innerType, in: input } = definitionOf(schema);
  const inner = innerType ?? input;
  return inner ? unwrap(inner) : schema;
}
