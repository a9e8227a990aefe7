import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { exampleOf, type JsonSchema } from "../../src/http/example.ts";
import { openApi } from "../../src/http/openapi.ts";
import { routeOf } from "../../src/http/routes.ts";
import { operations } from "../../src/operations/list.ts";
import { operation } from "../../src/operations/operation.ts";
import { api } from "./api.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is looked into by tests, which fail where a part is missing
type Document = any;

async function problems(document: Document): Promise<unknown> {
  const { valid, errors } = await new Validator().validate(document);
  return valid ? undefined : errors;
}

/** Every `$ref` in the document, that it must hold itself. */
function refs(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "$ref" ? [inner as string] : refs(inner)));
}

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1 and describes every operation", async () => {
    const { status, body } = await (await api()).call("GET", "/openapi.json");
    expect(status).toBe(200);
    expect(body.openapi).toMatch(/^3\.1\./);
    expect(await problems(body)).toBeUndefined();
    const described = Object.values(body.paths as Document).flatMap((path: Document) =>
      Object.values(path).map((one: Document) => one.operationId),
    );
    expect(described.sort()).toEqual([...operations.map(({ name }) => name), "health", "events"].sort());
  });

  it("would be found invalid if it were", async () => {
    const document: Document = openApi(operations);
    document.paths["/v1/checkpoint/save"].post.responses = "none";
    expect(await problems(document)).toBeDefined();
  });

  it("gives examples that the operations accept", () => {
    for (const { input, name } of operations) {
      const example = exampleOf(z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as JsonSchema);
      expect(input.safeParse(example), name).toMatchObject({ success: true });
    }
  });

  it("states the location and the type of each field", () => {
    const document: Document = openApi(operations);
    const save = document.paths["/v1/checkpoint/save"].post;
    expect(save.requestBody.content["application/json"].schema).toMatchObject({
      required: ["project_path", "summary"],
      properties: { summary: { type: "string", minLength: 1, maxLength: 500 } },
      additionalProperties: false,
    });
    const revoke = document.paths["/v1/key/{id}"].delete;
    expect(revoke.parameters).toEqual([expect.objectContaining({ name: "id", in: "path", required: true })]);
    expect(revoke.requestBody).toBeUndefined();
    expect(save.responses[429]).toEqual({ $ref: "#/components/responses/RATE_LIMITED" });
  });

  it("stays valid with schemas that refer to themselves", async () => {
    type Tree = { name: string; children?: Tree[] | undefined };
    const Tree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), children: z.array(Tree).optional() }));
    const grow = operation({
      name: "tree_grow",
      summary: "Grows.",
      input: z.strictObject({ tree: Tree, filter: z.record(z.string(), z.string()).optional() }),
      output: z.object({ tree: Tree }),
      access: "read",
      annotations: { readOnly: true, destructive: false, idempotent: true },
      limits: { timeoutMs: 1 },
      toolset: "none",
      render: () => "",
      run: async () => ({}),
    });
    const document: Document = openApi([grow, { ...grow, name: "tree_find", http: { method: "GET", path: "/v1/tree/{tree}" } }]);
    expect(await problems(document)).toBeUndefined();
    const found = refs(document);
    expect(found.length).toBeGreaterThan(0);
    for (const ref of found) {
      const target = ref
        .slice(2)
        .split("/")
        .reduce((at: Document, part) => at?.[part], document);
      expect(target, ref).toBeDefined();
    }
  });

  it("has no two operations on one route", () => {
    const routes = operations.map(routeOf).map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, "{}")}`);
    expect(new Set(routes).size).toBe(routes.length);
  });
});
