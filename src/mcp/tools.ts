import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { hasProject, type Operation, type Toolset } from "../operations/operation.ts";

/** What an operation looks like to an MCP client. With a default project the call need not name one. */
export function toolOf(operation: Operation, defaultProject?: string): Tool {
  const { readOnly, destructive, idempotent } = operation.annotations;
  return {
    name: operation.name,
    title: titleOf(operation.name),
    description: operation.description ? `${operation.summary} ${operation.description}` : operation.summary,
    inputSchema: inputSchema(operation, defaultProject),
    outputSchema: jsonSchema(operation.output, "output") as NonNullable<Tool["outputSchema"]>,
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: idempotent,
      openWorldHint: false, // Cairn reaches nothing but its own store
    },
  };
}

/** The operations of these toolsets, in the order of the list. */
export function chooseOperations(operations: readonly Operation[], toolsets: readonly Toolset[]): Operation[] {
  return operations.filter(({ toolset }) => toolset !== "none" && toolsets.includes(toolset));
}

function titleOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function inputSchema(operation: Operation, defaultProject: string | undefined): Tool["inputSchema"] {
  const schema = jsonSchema(operation.input, "input") as Tool["inputSchema"] & { properties: Record<string, object> };
  if (!hasProject(operation) || defaultProject === undefined) return schema;
  schema.properties.project_path = { ...schema.properties.project_path, description: "Default: this session's project." };
  schema.required = schema.required?.filter((name) => name !== "project_path") ?? [];
  return schema;
}

/** Returns the JSON Schema without parts that cost a model tokens and carry no information. */
function jsonSchema(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    override: ({ jsonSchema: part }) => {
      if (part.maximum === Number.MAX_SAFE_INTEGER) delete part.maximum;
      if (part.minimum === Number.MIN_SAFE_INTEGER) delete part.minimum;
      if (part.minLength === 0) delete part.minLength;
      if (part.format) delete part.pattern;
      if (io === "output") {
        // That an answer has all its fields and no others is for us to see to.
        delete part.required;
        if (part.additionalProperties === false) delete part.additionalProperties;
        // Only present when stored records are damaged, and then its content explains itself.
        if (part.properties) delete part.properties.damaged;
      }
      if (typeof part.propertyNames === "object" && Object.keys(part.propertyNames).join() === "type") delete part.propertyNames;
    },
  });
  return rest;
}
