import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the model does in a session: it says a sentence and writes a file, then says the last sentence. */
export interface MockScript {
  readonly first: string;
  readonly last: string;
  /** Absolute path and content of the file that it writes. */
  readonly file: { readonly path: string; readonly content: string };
}

type Wire = Record<string, unknown>;
/** The fields of a request that decide about the answer. */
interface ModelRequest {
  readonly model?: string;
  readonly messages?: readonly { readonly content?: unknown }[];
  readonly tools?: readonly { readonly name?: string }[];
  readonly contents?: readonly { readonly parts?: readonly Wire[] }[];
  readonly input?: readonly { readonly type?: string }[];
}
type Event = readonly [type: string, data: Wire];

/** Serves a model on loopback with the streaming interfaces of Anthropic (`/v1/messages`), OpenAI (`/v1/responses`) and Google (`/v1beta`). */
export async function mockModel(script: MockScript): Promise<{ url: string; requests: ModelRequest[]; close(): Promise<void> }> {
  const requests: ModelRequest[] = [];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    requests.push(body);
    const path = request.url ?? "";
    if (path.includes("/count_tokens")) return void response.end(JSON.stringify({ input_tokens: 10 }));
    if (path.startsWith("/v1/messages")) return answer(response, anthropicEvents(body, script));
    if (path.startsWith("/v1/responses")) return answer(response, openaiEvents(body, script));
    if (path.startsWith("/v1beta/models/")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      return void response.end(`data: ${JSON.stringify(geminiAnswer(body, script))}\r\n\r\n`);
    }
    response.writeHead(404).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      await new Promise((resolved) => server.close(resolved));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<ModelRequest> {
  let text = "";
  for await (const chunk of request) text += chunk;
  try {
    return JSON.parse(text);
  } catch {
    return {}; // a probe without a body
  }
}

function answer(response: ServerResponse, events: readonly Event[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [type, data] of events) response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  response.end();
}

function anthropicEvents({ model, messages = [], tools = [] }: ModelRequest, { first, last, file }: MockScript): Event[] {
  const content = messages.at(-1)?.content;
  const isDone = Array.isArray(content) && content.some(({ type }: Wire) => type === "tool_result");
  const canWrite = tools.some(({ name }) => name === "Write");
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_mock", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage };
  const block = (index: number, start: Wire, delta: Wire): Event[] => [
    ["content_block_start", { index, content_block: start }],
    ["content_block_delta", { index, delta }],
    ["content_block_stop", { index }],
  ];
  const text = (value: string) => block(0, { type: "text", text: "" }, { type: "text_delta", text: value });
  const input = { file_path: file.path, content: file.content };
  const write = block(
    1,
    { type: "tool_use", id: "toolu_mock", name: "Write", input: {} },
    { type: "input_json_delta", partial_json: JSON.stringify(input) },
  );
  const writes = canWrite && !isDone;
  return [
    ["message_start", { message }],
    ...(writes ? [...text(first), ...write] : text(last)),
    ["message_delta", { delta: { stop_reason: writes ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } }],
    ["message_stop", {}],
  ];
}

function openaiEvents({ input = [] }: ModelRequest, { first, last, file }: MockScript): Event[] {
  const isDone = input.some(({ type }) => type === "function_call_output");
  const says = (text: string) => ({
    type: "message",
    id: "m_mock",
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [] }],
  });
  const lines = file.content
    .trimEnd()
    .split("\n")
    .map((line) => `+${line}`);
  const patch = ["*** Begin Patch", `*** Add File: ${file.path}`, ...lines, "*** End Patch"].join("\n");
  const cmd = `apply_patch <<'PATCH'\n${patch}\nPATCH`;
  const call = { type: "function_call", id: "fc_mock", call_id: "call_mock", name: "exec_command", arguments: JSON.stringify({ cmd }) };
  const items = isDone ? [says(last)] : [says(first), call];
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
  return [
    ["response.created", { response: { id: "resp_mock" } }],
    ...items.map((item, index): Event => ["response.output_item.done", { output_index: index, item }]),
    ["response.completed", { response: { id: "resp_mock", usage } }],
  ];
}

function geminiAnswer({ contents = [] }: ModelRequest, { first, last, file }: MockScript): Wire {
  const isDone = contents.at(-1)?.parts?.some((part) => "functionResponse" in part) ?? false;
  const call = { functionCall: { name: "write_file", args: { file_path: file.path, content: file.content } } };
  const parts = isDone ? [{ text: last }] : [{ text: first }, call];
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  return { candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }], usageMetadata };
}
