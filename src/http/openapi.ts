import { z } from "zod";
import { type ErrorCode, WIRE_NAME } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Operation } from "../operations/operation.ts";
import { HTTP_STATUS } from "./errors.ts";
import { EVENT_PATH, EventQuery } from "./event-stream.ts";
import { exampleOf, type JsonSchema } from "./example.ts";
import { nounOf, type Route, routeOf } from "./routes.ts";

/** The errors any operation can answer with, next to those every HTTP server has. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "invalid_input",
  "unauthorized",
  "forbidden",
  "not_found",
  "conflict",
  "too_large",
  "rate_limited",
  "internal",
  "unavailable",
  "timeout",
];

/** The OpenAPI 3.1 description of the operations, made from the same schemas that check them. */
export function openApi(operations: readonly Operation[]): Record<string, unknown> {
  const schemas: Record<string, JsonSchema> = { Error: errorSchema() };
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const route = routeOf(operation);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describe(operation, route, schemas) };
  }
  paths[EVENT_PATH] = { get: eventOperation(schemas) };
  paths["/health"] = { get: healthOperation() };
  return {
    openapi: "3.1.1",
    info: {
      title: "Cairn",
      summary: "Durable memory for AI agents and the workflows they run.",
      version: VERSION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set([...operations.map(({ name }) => nounOf(name)), "events"])].map((name) => ({ name })),
    security: [{ bearer: [] }, { apiKey: [] }],
    paths,
    components: {
      schemas,
      responses: Object.fromEntries(
        COMMON_ERRORS.map((code) => [
          WIRE_NAME[code],
          {
            description: `${WIRE_NAME[code]} (${code})`,
            content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
          },
        ]),
      ),
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "An API key (cairn_<id>_<secret>), or the local token that `cairn token` prints (cairn_local_<secret>).",
        },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
  };
}

function describe(operation: Operation, route: Route, schemas: Record<string, JsonSchema>): Record<string, unknown> {
  const input = jsonSchema(operation.input, "input", operation.name, schemas);
  const inQuery = (name: string) => !route.hasBody && !route.pathFields.includes(name);
  const parameters = Object.entries(input.properties ?? {})
    .filter(([name]) => route.pathFields.includes(name) || inQuery(name))
    .map(([name, schema]) => ({
      name,
      in: inQuery(name) ? "query" : "path",
      required: !inQuery(name) || (input.required ?? []).includes(name),
      ...(schema.description === undefined ? {} : { description: schema.description }),
      ...(schema.type === "object" && inQuery(name) ? { content: { "application/json": { schema } } } : { schema }),
    }));
  const body = without(input, route.pathFields);
  return {
    operationId: operation.name,
    tags: [nounOf(operation.name)],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(parameters.length ? { parameters } : {}),
    ...(route.hasBody
      ? {
          requestBody: {
            required: (body.required ?? []).length > 0,
            content: { "application/json": { schema: body, example: exampleOf(body) } },
          },
        }
      : {}),
    responses: {
      [route.status]: {
        description: "Done.",
        content: { "application/json": { schema: jsonSchema(operation.output, "output", operation.name, schemas) } },
      },
      ...Object.fromEntries(COMMON_ERRORS.map((code) => [HTTP_STATUS[code], { $ref: `#/components/responses/${WIRE_NAME[code]}` }])),
      // The content type or encoding of the body is not supported.
      ...(route.hasBody && { 415: { $ref: `#/components/responses/${WIRE_NAME.invalid_input}` } }),
    },
    "x-cairn-access": operation.access,
    "x-cairn-timeout-ms": operation.limits.timeoutMs,
  };
}

/** A schema as OpenAPI 3.1 holds it: what it defines for reuse moves to the components, because references start at the document. */
function jsonSchema(schema: z.ZodType, io: "input" | "output", prefix: string, schemas: Record<string, JsonSchema>): JsonSchema {
  const { $schema: _, $defs, ...plain } = z.toJSONSchema(schema, { io, target: "draft-2020-12", unrepresentable: "any" }) as JsonSchema;
  const name = (definition: string) => `${prefix}_${io}_${definition}`.replace(/[^\w.-]/g, "_");
  const moved = <T>(value: T): T =>
    JSON.parse(
      JSON.stringify(value, (key, inner) =>
        key === "$ref" && typeof inner === "string"
          ? inner.replace(/^#\/\$defs\/(.+)$/, (__, id) => `#/components/schemas/${name(id)}`)
          : inner,
      ),
    );
  for (const [id, definition] of Object.entries($defs ?? {})) schemas[name(id)] = moved(definition);
  return moved(plain);
}

function without(schema: JsonSchema, fields: readonly string[]): JsonSchema {
  if (fields.length === 0) return schema;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => !fields.includes(name))),
    required: (schema.required ?? []).filter((name) => !fields.includes(name)),
  };
}

function errorSchema(): JsonSchema {
  return {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["code", "name", "message", "request_id"],
        properties: {
          code: { type: "string", enum: Object.keys(WIRE_NAME) },
          name: { type: "string", enum: Object.values(WIRE_NAME) },
          message: { type: "string", description: "What happened, then what to do." },
          details: { type: "object", description: "Which field, which limit." },
          request_id: { type: "string" },
        },
      },
    },
  };
}

/** The stream is no operation: it has no single answer. */
function eventOperation(schemas: Record<string, JsonSchema>): Record<string, unknown> {
  const { project_path: projects } = jsonSchema(EventQuery, "input", "events", schemas).properties ?? {};
  const { description, ...schema } = projects!;
  const refusals = ["invalid_input", "unauthorized", "forbidden", "rate_limited", "unavailable"] as const;
  return {
    operationId: "events",
    tags: ["events"],
    summary: "Follow changes of records, runs and code as server-sent events.",
    parameters: [
      { name: "project_path", in: "query", required: false, description, schema },
      {
        name: "Last-Event-ID",
        in: "header",
        required: false,
        description: "The id of the last event that arrived: the stream continues after it.",
        schema: { type: "string" },
      },
    ],
    responses: {
      200: {
        description: "Events of the types change, reset and dropped.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      ...Object.fromEntries(refusals.map((code) => [HTTP_STATUS[code], { $ref: `#/components/responses/${WIRE_NAME[code]}` }])),
    },
  };
}

function healthOperation(): Record<string, unknown> {
  const answer = (description: string) => ({ description, content: { "application/json": { schema: { type: "object" } } } });
  return {
    operationId: "health",
    summary: "Report whether the server is alive and ready, with reasons.",
    security: [{}],
    responses: { 200: answer("Ready."), 503: answer("Not ready; `checks` has the reasons.") },
  };
}
