import type { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { definitionOf, unwrap } from "../operations/zod-schema.ts";
import { parseJson } from "../text/untrusted.ts";
import { HttpRefusal } from "./errors.ts";

/** Returns the JSON body of a request, or an empty object without one. Reads at most `limitBytes`. */
export async function readJson(request: Request, limitBytes: number): Promise<unknown> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity")
    throw new HttpRefusal(
      415,
      `Bodies encoded as ${JSON.stringify(encoding.slice(0, 50))} are not read. Send it without Content-Encoding.`,
    );
  const type = request.headers.get("content-type");
  if (type !== null && !isJson(type)) throw wrongType();
  const bytes = await readBody(request, limitBytes);
  if (bytes.length === 0) return {};
  if (type === null) throw wrongType();
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new CairnError("invalid_input", "The body is not valid UTF-8. Send JSON in UTF-8.");
  }
  try {
    return parseJson(text);
  } catch (error) {
    throw new CairnError("invalid_input", `The body is ${(error as CairnError).message}`);
  }
}

function isJson(type: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type.trim());
}

function wrongType(): HttpRefusal {
  return new HttpRefusal(415, "Send the body as JSON, with the header Content-Type: application/json.");
}

function refuseLength(request: Request, limitBytes: number): void {
  if (Number(request.headers.get("content-length") ?? 0) > limitBytes) throw tooLarge(limitBytes);
}

/** The same request, whose body fails once it is longer than the limit: for handlers that read it themselves. */
export function limitBody(request: Request, limitBytes: number): Request {
  refuseLength(request, limitBytes);
  if (request.body === null || request.headers.has("content-length")) return request;
  let length = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      length += chunk.byteLength;
      if (length > limitBytes) controller.error(tooLarge(limitBytes));
      else controller.enqueue(chunk);
    },
  });
  const { method, headers, signal } = request;
  return new Request(request.url, { method, headers, signal, body: request.body.pipeThrough(counter), duplex: "half" });
}

async function readBody(request: Request, limitBytes: number): Promise<Uint8Array> {
  refuseLength(request, limitBytes);
  try {
    // A declared length is kept by the host's HTTP parser, so the body may be read at once, which is several times faster than a stream.
    if (request.headers.has("content-length")) return new Uint8Array(await request.arrayBuffer());
    return request.body === null ? new Uint8Array() : await readStream(request.body, limitBytes);
  } catch (error) {
    if (error instanceof CairnError) throw error;
    throw new CairnError("cancelled", "The body ended early: the client went away.", { cause: error });
  }
}

async function readStream(body: ReadableStream<Uint8Array>, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > limitBytes) throw tooLarge(limitBytes); // leaving the loop cancels the stream
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function tooLarge(limitBytes: number): CairnError {
  return new CairnError("too_large", `The body is larger than the ${limitBytes} bytes allowed here. Send less at a time.`, {
    details: { limit_bytes: limitBytes },
  });
}

/** Reads a query by the schema: it states which fields are numbers, booleans, lists or JSON. A value that does not fit stays text, and the schema rejects it. */
export function readQuery(schema: z.ZodObject, query: URLSearchParams): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  const fields = new Map<string, string[]>(); // in one pass: getAll for each of thousands of names would be quadratic
  for (const [name, value] of query) {
    const values = fields.get(name);
    if (values) values.push(value);
    else fields.set(name, [value]);
  }
  for (const [name, values] of fields) {
    const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined;
    const value = field ? coerce(field, values) : values[0];
    Object.defineProperty(input, name, { value, enumerable: true, configurable: true, writable: true }); // a field named __proto__ is just unknown
  }
  return input;
}

function coerce(schema: z.ZodType, values: readonly string[]): unknown {
  const { type, element, options } = definitionOf(unwrap(schema));
  if (type === "array") return values.map((value) => coerce(element!, [value]));
  if (values.length > 1) return values; // repeated; no scalar takes a list
  const value = values[0]!;
  switch (type) {
    case "number":
    case "int":
      return /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : value;
    case "boolean":
      return value === "true" ? true : value === "false" ? false : value;
    case "object":
    case "record":
      return parseValue(value);
    case "union":
      return options!.map((option) => coerce(option, values)).find((candidate) => schema.safeParse(candidate).success) ?? value;
    default:
      return value;
  }
}

function parseValue(value: string): unknown {
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}
