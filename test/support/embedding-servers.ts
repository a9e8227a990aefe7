import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Replaces the answer to one request. */
export type Trouble = (request: { readonly path: string; readonly body: RequestBody }, response: ServerResponse) => void;

/** Request fields of both services. */
export interface RequestBody {
  readonly model?: string;
  readonly input: string[];
  readonly encoding_format?: string;
  readonly dimensions?: number;
  readonly inputs: string[];
  readonly truncate?: boolean;
  readonly normalize?: boolean;
}

export interface StandIn {
  readonly url: string;
  /** Bodies of all requests, newest last. */
  readonly requests: { readonly path: string; readonly body: RequestBody; readonly authorization: string | undefined }[];
  /** Failures of the next requests, one per request. */
  readonly troubles: Trouble[];
  /** Failure of every request while it is set. */
  lasting?: Trouble | undefined;
  close(): Promise<void>;
}

/** Starts a test double of OpenAI's `/v1/embeddings`, including its error bodies. */
export function openAiStandIn(dimension = 1536): Promise<StandIn> {
  return standIn(async (body, response) => {
    const { input, model, encoding_format, dimensions = dimension } = body;
    const refuse = (status: number, message: string, type = "invalid_request_error", code: string | null = null) =>
      json(response, status, { error: { message, type, param: null, code } });
    if (!Array.isArray(input) || input.length === 0) return refuse(400, "'$.input' is invalid.");
    if (input.length > 2_048) return refuse(400, "'$.input' is too long. Maximum length is 2048.");
    if (input.some((text) => text === "")) return refuse(400, "'$.input' is invalid: input cannot be an empty string.");
    const data = input.map((text, index) => {
      const vector = pseudoVector(text, dimensions);
      return {
        object: "embedding",
        index,
        embedding: encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : [...vector],
      };
    });
    // The API promises the index of each vector, not their order.
    json(response, 200, {
      object: "list",
      data: data.reverse(),
      model,
      usage: { prompt_tokens: input.length * 5, total_tokens: input.length * 5 },
    });
  });
}

/** Starts a test double of a TEI server. */
export function teiStandIn({ model = "BAAI/bge-small-en-v1.5", dimension = 384, batch = 32 } = {}): Promise<StandIn> {
  return standIn(async (body, response, path) => {
    if (path === "/info")
      return json(response, 200, {
        model_id: model,
        model_sha: null,
        model_dtype: "float32",
        max_client_batch_size: batch,
        max_input_length: 512,
        version: "1.9.3",
      });
    const { inputs, truncate } = body;
    if (inputs.length > batch)
      return json(response, 422, { error: `batch size ${inputs.length} > maximum allowed batch size ${batch}`, error_type: "Validation" });
    if (inputs.some((text) => text === "")) return json(response, 400, { error: "`inputs` cannot be empty", error_type: "Empty" });
    if (!truncate && inputs.some((text) => text.length > 2_000))
      return json(response, 422, { error: "`inputs` must have less than 512 tokens", error_type: "Validation" });
    json(
      response,
      200,
      inputs.map((text) => [...pseudoVector(text, dimension)]),
    );
  });
}

async function standIn(answer: (body: RequestBody, response: ServerResponse, path: string) => void | Promise<void>): Promise<StandIn> {
  const requests: StandIn["requests"] = [];
  const troubles: Trouble[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    const body = await readJson(request);
    requests.push({ path, body, authorization: request.headers.authorization });
    const trouble = troubles.shift() ?? self.lasting;
    if (trouble) trouble({ path, body }, response);
    else await answer(body, response, path.replace(/^\/v1/, ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const self: StandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    troubles,
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
  return self;
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function readJson(request: IncomingMessage): Promise<RequestBody> {
  let text = "";
  for await (const part of request) text += part;
  return JSON.parse(text || "{}");
}

function pseudoVector(text: string, dimension: number): Float32Array {
  const vector = new Float32Array(dimension);
  for (let i = 0; i < text.length; i++) vector[(text.charCodeAt(i) * 31 + i) % dimension]! += 1;
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}
