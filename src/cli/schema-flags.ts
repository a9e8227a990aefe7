import type { z } from "zod";
import { definitionOf, unwrap } from "../operations/zod-schema.ts";
import type { Flag } from "./command.ts";

/** Returns the flags of an input schema, one per field: `sort_by` becomes `--sort-by`. */
export function schemaFlags(schema: z.ZodObject, leaveOut: readonly string[]): Flag[] {
  return Object.entries(schema.shape)
    .filter(([field]) => !leaveOut.includes(field))
    .map(([field, type]) => flagOf(field, type as z.ZodType));
}

export const flagName = (field: string) => field.replaceAll("_", "-");

function flagOf(field: string, schema: z.ZodType): Flag {
  const core = unwrap(schema);
  const kind = kindOf(core);
  const fallback = defaultOf(schema);
  const choices = choicesOf(kind === "list" ? unwrap(definitionOf(core).element!) : core);
  return {
    name: flagName(field),
    kind,
    description: descriptionOf(schema) ?? "",
    required: !schema.safeParse(undefined).success,
    ...(choices && { choices }),
    ...(fallback !== undefined && { fallback }),
  };
}

function kindOf(core: z.ZodType): Flag["kind"] {
  const { type, element, valueType } = definitionOf(core);
  const isText = (schema: z.ZodType | undefined) =>
    schema !== undefined && ["string", "enum", "literal"].includes(definitionOf(unwrap(schema)).type);
  if (type === "number" || type === "int") return "number";
  if (type === "boolean") return "switch";
  if (type === "array" && isText(element)) return "list";
  if (type === "record" && isText(valueType)) return "map";
  return isText(core) ? "text" : "json";
}

function choicesOf(core: z.ZodType): readonly string[] | undefined {
  const { entries, values } = definitionOf(core);
  return entries ? Object.values(entries) : values?.map(String);
}

function defaultOf(schema: z.ZodType): unknown {
  const { defaultValue, innerType } = definitionOf(schema);
  return defaultValue ?? (innerType ? defaultOf(innerType) : undefined);
}

function descriptionOf(schema: z.ZodType): string | undefined {
  const { innerType } = definitionOf(schema);
  return schema.description ?? (innerType ? descriptionOf(innerType) : undefined);
}
