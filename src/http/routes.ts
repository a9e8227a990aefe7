import type { Operation } from "../operations/operation.ts";

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As OpenAPI writes it: `/v1/key/{id}`. */
  readonly path: string;
  readonly status: number;
  /** The fields of the input that stand in the path. */
  readonly pathFields: readonly string[];
  /** Whether the input comes as a JSON body rather than in the query. */
  readonly hasBody: boolean;
}

/** Where an operation is found: what it says itself, else `POST /v1/<noun>/<verb>`. */
export function routeOf({ name, http }: Operation): Route {
  const path = http?.path ?? `/v1/${nounOf(name)}/${name.slice(nounOf(name).length + 1)}`;
  const method = http?.method ?? "POST";
  return {
    method,
    path,
    status: http?.status ?? 200,
    pathFields: [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field!),
    hasBody: method === "POST" || method === "PATCH",
  };
}

/** `checkpoint_save` belongs to `checkpoint`. */
export function nounOf(operationName: string): string {
  return operationName.split("_", 1)[0]!;
}
