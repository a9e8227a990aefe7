import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// biome-ignore lint/suspicious/noExplicitAny: requests of four protocols are looked into field by field
export type Body = any;

export interface ToolCall {
  /** The name of the operation. Clients put a prefix before it. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ToolCallingModel {
  readonly url: string;
  /** Requests with tools, in the order of arrival. */
  readonly requests: readonly Body[];
  close(): Promise<void>;
}

/** A model on loopback that makes the given tool calls, one per turn, and then ends. It speaks the protocols of four vendors. */
export async function toolCallingModel(script: readonly ToolCall[]): Promise<ToolCallingModel> {
  const requests: Body[] = [];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    const path = new URL(request.url ?? "/", "http://mock").pathname;
    const protocol = PROTOCOLS.find(({ matches }) => matches(path));
    if (!protocol) return void response.writeHead(404, { "content-type": "application/json" }).end("{}");
    const tools = protocol.toolsOf(body);
    const main = tools.length > 0;
    if (main) requests.push(body);
    // Side requests, such as a title for the session, have no tools.
    const call = main ? script[protocol.answersIn(body)] : undefined;
    const name = call && tools.find((tool) => tool.name.endsWith(call.tool));
    if (call && !name) process.stderr.write(`mock model: no tool ${call.tool} among ${tools.map((tool) => tool.name).join(", ")}\n`);
    protocol.answer(response, call && name ? { ...name, input: call.input } : undefined, requests.length, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface OfferedTool {
  readonly name: string;
  readonly namespace?: string | undefined;
}

interface Protocol {
  readonly matches: (path: string) => boolean;
  readonly toolsOf: (body: Body) => readonly OfferedTool[];
  /** How many tool results the conversation has. */
  readonly answersIn: (body: Body) => number;
  readonly answer: (
    response: ServerResponse,
    call: (OfferedTool & { input: Readonly<Record<string, unknown>> }) | undefined,
    turn: number,
    body: Body,
  ) => void;
}

const DONE = "Done.";

const PROTOCOLS: readonly Protocol[] = [
  {
    matches: (path) => path.endsWith("/messages"), // Anthropic
    toolsOf: ({ tools = [] }) => tools.map(({ name }: Body) => ({ name })),
    answersIn: ({ messages }) =>
      count(messages, ({ content }) => Array.isArray(content) && content.some(({ type }) => type === "tool_result")),
    answer(response, call, turn) {
      const block = call ? { type: "tool_use", id: `toolu_${turn}`, name: call.name, input: {} } : { type: "text", text: "" };
      const delta = call ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) } : { type: "text_delta", text: DONE };
      const message = {
        id: `msg_${turn}`,
        type: "message",
        role: "assistant",
        model: "mock",
        content: [],
        stop_reason: null,
        stop_sequence: null,
      };
      stream(response, [
        { type: "message_start", message: { ...message, usage: { input_tokens: 1, output_tokens: 1 } } },
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ]);
    },
  },
  {
    matches: (path) => path.endsWith("/responses"), // OpenAI, as Codex uses it
    toolsOf: ({ tools = [] }) =>
      tools.flatMap((tool: Body) =>
        tool.type === "namespace"
          ? tool.tools.map(({ name }: Body) => ({ name, namespace: tool.name }))
          : tool.name
            ? [{ name: tool.name }]
            : [],
      ),
    answersIn: ({ input }) => count(input, ({ type }) => type === "function_call_output"),
    answer(response, call, turn) {
      const item = call
        ? {
            type: "function_call",
            call_id: `call_${turn}`,
            name: call.name,
            namespace: call.namespace,
            arguments: JSON.stringify(call.input),
          }
        : { type: "message", role: "assistant", id: `msg_${turn}`, content: [{ type: "output_text", text: DONE }] };
      const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
      stream(response, [
        { type: "response.created", response: { id: `resp_${turn}` } },
        { type: "response.output_item.done", item },
        { type: "response.completed", response: { id: `resp_${turn}`, usage } },
      ]);
    },
  },
  {
    matches: (path) => path.includes(":streamGenerateContent") || path.includes(":generateContent"), // Gemini
    toolsOf: ({ tools = [] }) =>
      tools.flatMap(({ functionDeclarations = [] }: Body) => functionDeclarations.map(({ name }: Body) => ({ name }))),
    answersIn: ({ contents }) => count(contents, ({ parts }) => parts?.some(({ functionResponse }: Body) => functionResponse)),
    answer(response, call) {
      const part = call ? { functionCall: { name: call.name, args: call.input } } : { text: DONE };
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
      stream(response, [{ candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }], usageMetadata }]);
    },
  },
  {
    matches: (path) => path.endsWith("/chat/completions"), // OpenAI-compatible, as opencode uses it
    toolsOf: ({ tools = [] }) => tools.map((tool: Body) => ({ name: tool.function.name })),
    answersIn: ({ messages }) => count(messages, ({ role }) => role === "tool"),
    answer(response, call, turn) {
      const chunk = (delta: object, finish_reason: string | null) => ({
        ...{ id: `chat_${turn}`, object: "chat.completion.chunk", created: 1, model: "mock" },
        choices: [{ index: 0, delta, finish_reason }],
      });
      const made = {
        index: 0,
        id: `call_${turn}`,
        type: "function",
        function: { name: call?.name, arguments: JSON.stringify(call?.input) },
      };
      stream(
        response,
        [
          chunk(call ? { role: "assistant", tool_calls: [made] } : { role: "assistant", content: DONE }, null),
          chunk({}, call ? "tool_calls" : "stop"),
        ],
        "data: [DONE]\n\n",
      );
    },
  },
];

function count(items: readonly Body[] | undefined, holds: (item: Body) => boolean): number {
  return Array.isArray(items) ? items.filter(holds).length : 0;
}

function stream(response: ServerResponse, events: readonly Body[], end = ""): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  response.end(end);
}

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return {};
  }
}
