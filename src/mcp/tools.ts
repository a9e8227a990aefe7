import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Operation, Toolset } from "../operations/operation.ts";

/** What an operation looks like to an MCP client. With a default project the call need not name one. */
export function toolOf(operation: Operation, defaultProject?: string): Tool {
  const { readOnly, destructive, idempotent } = operation.annotations;
  return {
    name: operation.name,
    description: operation.description ? `${operation.summary} ${operation.description}` : operation.summary,
    inputSchema: inputSchema(operation, defaultProject),
    // Compact and full answers have different fields, and a client validates both.
    outputSchema: { type: "object" },
    // The other hints matter only for tools that change something. Cairn reaches nothing but its own store.
    annotations: readOnly
      ? { readOnlyHint: true }
      : { destructiveHint: destructive, ...(idempotent && destructive && { idempotentHint: true }), openWorldHint: false },
    ...metaOf(operation),
  };
}

/** The operations of these toolsets, in the order of the list. `core` is always offered: the other toolsets add to it. */
export function chooseOperations(operations: readonly Operation[], toolsets: readonly Toolset[]): Operation[] {
  return operations.filter(({ toolset }) => toolset === "core" || (toolset !== "none" && toolsets.includes(toolset)));
}

/** Hints for clients that load tools only when an agent searches for them. */
function metaOf({ mcp }: Operation): Pick<Tool, "_meta"> {
  if (mcp?.alwaysLoad) return { _meta: { "anthropic/alwaysLoad": true } };
  return mcp?.searchHint === undefined ? {} : { _meta: { "anthropic/searchHint": mcp.searchHint } };
}

function inputSchema(operation: Operation, defaultProject: string | undefined): Tool["inputSchema"] {
  const schema = jsonSchema(operation.input) as Tool["inputSchema"] & { properties: Record<string, object> };
  // Every tool accepts both; they are listed where answers are long.
  if (operation.mcp?.rows !== undefined || "max_tokens" in schema.properties) schema.properties.max_tokens = { type: "integer" };
  if (operation.mcp?.rows !== undefined) schema.properties.detail = { type: "string", enum: ["full"] };
  // The client side knows the working tree, so agents do not name it.
  for (const field of ["code_path", ...(operation.mcp?.unlisted ?? [])]) delete schema.properties[field];
  if (!operation.hasProject) return schema;
  // The instructions of the server state which project is the default.
  schema.properties.project_path = { type: "string", ...(defaultProject === undefined && { description: "Absolute path, or a name." }) };
  if (defaultProject === undefined) return schema;
  schema.required = schema.required?.filter((name) => name !== "project_path") ?? [];
  if (schema.required.length === 0) delete schema.required;
  return schema;
}

/** Returns the JSON Schema without parts that cost a model tokens. A value beyond a limit is refused with an error that names the limit. */
function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema: part }) => {
      for (const limit of LIMIT_KEYWORDS) delete part[limit];
      if (part.format) delete part.pattern;
      if (part.additionalProperties === false) delete part.additionalProperties;
      delete part.propertyNames;
    },
  });
  return rest;
}

const LIMIT_KEYWORDS = ["minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems"] as const;
