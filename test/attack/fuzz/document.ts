import type { JsonSchema } from "../../../src/http/example.ts";

export interface DocumentedOperation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly timeoutMs: number;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: "path" | "query";
    readonly schema: JsonSchema;
    readonly required: boolean;
  }[];
  readonly body: JsonSchema | undefined;
  /** JSON pointers to the schema of each documented status. */
  readonly responses: Readonly<Record<string, string>>;
}

// biome-ignore lint/suspicious/noExplicitAny: the document comes over the wire; the fuzzer fails where a part is missing
type Document = any;

/** Reads the operations from the server's own description, which is all that an attacker from outside knows. */
export function readOperations(document: Document): DocumentedOperation[] {
  return Object.entries<Document>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Document>(methods)
      .filter(([, described]) => described["x-cairn-timeout-ms"] !== undefined)
      .map(([method, described]) => ({
        name: described.operationId,
        method: method.toUpperCase(),
        path,
        timeoutMs: described["x-cairn-timeout-ms"],
        parameters: (described.parameters ?? []).map((parameter: Document) => ({
          ...parameter,
          schema: parameter.schema ?? parameter.content["application/json"].schema,
        })),
        body: described.requestBody?.content["application/json"].schema,
        responses: Object.fromEntries(
          Object.entries<Document>(described.responses).map(([status, response]) => [
            status,
            response.$ref
              ? `${response.$ref}/content/application~1json/schema`
              : `#/paths/${escaped(path)}/${method}/responses/${status}/content/application~1json/schema`,
          ]),
        ),
      })),
  );
}

function escaped(path: string): string {
  return encodeURIComponent(path.replaceAll("~", "~0").replaceAll("/", "~1"));
}
