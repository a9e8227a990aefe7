import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { AttackAnswer } from "../client.ts";
import type { FuzzRequest } from "./requests.ts";

/** Texts that no answer may contain: a frame of a stack, a path of the program, or a folder of the server. */
const STACK =
  /\n\s+at .+:\d+:\d+|node:internal|node_modules|[\\/](?:dist|src)[\\/](?:cli|http|mcp|stores|model)[\\/]|file:\/\/\/(?!etc\/passwd)/;

/** Statuses of HTTP itself, which a client may get from any server: method, size of the headers, slow requests. */
const TRANSPORT_STATUSES = [204, 405, 408, 417, 431];

export interface Checks {
  /** Returns the problems of an answer. */
  problems(sent: FuzzRequest, answer: AttackAnswer): string[];
}

/** Checks answers against the server's own description. */
export function answerChecks(document: object, serverFolder: string): Checks {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false });
  ajv.addSchema(document, "openapi");
  const compiled = new Map<string, ValidateFunction>();
  const validate = (pointer: string) => {
    const known = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi${pointer}` });
    compiled.set(pointer, known);
    return known;
  };
  return {
    problems(sent, answer) {
      const found: string[] = [];
      if (answer.status === 0) found.push("closes the connection without an answer");
      if (answer.status >= 500 && !(answer.status === 503 && answer.headers["retry-after"])) found.push(`answers ${answer.status}`);
      const echoed = (pattern: string) => requestText(sent).includes(pattern);
      const stack = STACK.exec(answer.bytes)?.[0];
      if (stack && !echoed(stack.trim())) found.push(`shows ${JSON.stringify(stack)}`);
      if (sent.caller.access !== "admin" && answer.bytes.includes(serverFolder) && !echoed(serverFolder))
        found.push("shows the server's folder");
      if (reachesOperation(sent)) found.push(...undocumented(sent, answer, validate));
      return found;
    },
  };
}

/** Returns whether the request still addresses its operation: a damaged transport may have sent it elsewhere. */
function reachesOperation({ operation, protocol, request }: FuzzRequest): boolean {
  return protocol === "HTTP" && request.method === operation.method && request.path.startsWith(operation.path.replace(/\{.*$/, ""));
}

function undocumented(
  { operation }: FuzzRequest,
  { status, body }: AttackAnswer,
  validate: (pointer: string) => ValidateFunction,
): string[] {
  const pointer = operation.responses[status];
  if (!pointer) return TRANSPORT_STATUSES.includes(status) || status === 0 ? [] : [`answers ${status}, which is not documented`];
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return [`answers ${status} without JSON`];
  }
  const check = validate(pointer);
  return check(json) ? [] : [`answers ${status} against its schema: ${JSON.stringify(check.errors?.[0])}`];
}

function requestText({ request }: FuzzRequest): string {
  const body = Buffer.from(request.body ?? "").toString("utf8");
  return `${request.path}\n${decodeLoosely(request.path)}\n${body}\n${body.replaceAll("\\n", "\n").replaceAll("\\\\", "\\")}`;
}

function decodeLoosely(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
