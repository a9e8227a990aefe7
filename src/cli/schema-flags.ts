import type { z } from "zod";
import type { Flag } from "./command.ts";

interface Definition {
  readonly type: string;
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly element?: z.ZodType;
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly entries?: Readonly<Record<string, string>>;
  readonly values?: readonly unknown[];
  readonly options?: readonly z.ZodType[];
  readonly defaultValue?: unknown;
}

/** The flags that an operation's input schema asks for, one per field: `sort_by` becomes `--sort-by`. */
export function schemaFlags(schema: z.ZodObject, leaveOut: readonly string[]): Flag[] {
  return Object.entries(schema.shape)
    .filter(([field]) => !leaveOut.includes(field))
    .map(([field, type]) => flagOf(field, type as z.ZodType));
}

export const flagName = (field: string) => field.replaceAll("_", "-");

function flagOf(field: string, schema: z.ZodType): Flag {
  const core = peel(schema);
  const kind = kindOf(core);
  const fallback = defaultOf(schema);
  const choices = choicesOf(kind === "list" ? peel(definition(core).element!) : core);
  return {
    name: flagName(field),
    kind,
    description: descriptionOf(schema) ?? "",
    required: !schema.safeParse(undefined).success,
    ...(choices && { choices }),
    ...(fallback !== undefined && { fallback }),
  };
}

const definition = (schema: z.ZodType): Definition => schema._zod.def as unknown as Definition;

/** The schema that says what a given value is, without what only says that it may be left out. */
function peel(schema: z.ZodType): z.ZodType {
  const { innerType, in: input, type } = definition(schema);
  const inner = innerType ?? (type === "pipe" ? input : undefined);
  return inner ? peel(inner) : schema;
}

function kindOf(core: z.ZodType): Flag["kind"] {
  const { type, element, valueType } = definition(core);
  const isText = (schema: z.ZodType | undefined) =>
    schema !== undefined && ["string", "enum", "literal"].includes(definition(peel(schema)).type);
  if (type === "number" || type === "int") return "number";
  if (type === "boolean") return "switch";
  if (type === "array" && isText(element)) return "list";
  if (type === "record" && isText(valueType)) return "map";
  return isText(core) ? "text" : "json";
}

function choicesOf(core: z.ZodType): readonly string[] | undefined {
  const { entries, values } = definition(core);
  return entries ? Object.values(entries) : values?.map(String);
}

function defaultOf(schema: z.ZodType): unknown {
  const { defaultValue, innerType } = definition(schema);
  return defaultValue ?? (innerType ? defaultOf(innerType) : undefined);
}

function descriptionOf(schema: z.ZodType): string | undefined {
  const { innerType } = definition(schema);
  return schema.description ?? (innerType ? descriptionOf(innerType) : undefined);
}
