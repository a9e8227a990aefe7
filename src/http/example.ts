/** As much of JSON Schema as zod writes and we read. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly [other: string]: unknown;
}

/** Fields that many operations share, with a value a reader recognises. */
const KNOWN: Readonly<Record<string, unknown>> = {
  project_path: "/home/me/project",
  id: "6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c",
  summary: "Parser done, lexer next",
  query: "where did the parser work stop",
  label: "build server",
};

/** A value that fits the schema: its required fields, with what the schema gives as example, default or choice. */
export function exampleOf(schema: JsonSchema, name = ""): unknown {
  if (schema.examples?.length) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum?.length) return schema.enum[0];
  if (name in KNOWN) return KNOWN[name];
  if (schema.anyOf?.length) return exampleOf(schema.anyOf[0]!, name);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object":
      return Object.fromEntries((schema.required ?? []).map((field) => [field, exampleOf(schema.properties?.[field] ?? {}, field)]));
    case "array":
      return [exampleOf(schema.items ?? {}, name.replace(/s$/, ""))];
    case "integer":
    case "number":
      return Math.max(1, schema.minimum ?? 1);
    case "boolean":
      return true;
    default:
      return schema.format === "date-time" ? "2026-01-31T12:00:00.000Z" : name || "text";
  }
}
