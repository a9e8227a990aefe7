import {
  type Prompt as ListedPrompt,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { asCairnError } from "../model/errors.ts";
import { protocolError } from "./errors.ts";
import { pageOf } from "./paging.ts";

/** Calls an operation by its name, on behalf of the client and with its rights. */
export type CallOperation = (name: string, input: Readonly<Record<string, unknown>>) => Promise<Record<string, unknown>>;

/** A text that a person puts before the model, such as `/resume`. */
export interface Prompt {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** The protocol knows only strings here. */
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required?: boolean }[];
  readonly text: (args: Readonly<Record<string, string>>, call: CallOperation) => Promise<string> | string;
}

export function offerPrompts(
  server: Server,
  prompts: readonly Prompt[],
  callFor: (context: ServerContext) => CallOperation,
  pageSize: number,
): void {
  const listed = prompts.map(
    ({ name, title, description, arguments: args }): ListedPrompt => ({ name, title, description, arguments: [...args] }),
  );
  server.setRequestHandler("prompts/list", ({ params }) => {
    const { items, ...next } = pageOf("prompts", listed, params?.cursor, pageSize);
    return { prompts: items, ...next };
  });
  server.setRequestHandler("prompts/get", async ({ params }, context) => {
    const prompt = prompts.find(({ name }) => name === params.name);
    if (!prompt) throw invalid(`Unknown prompt ${JSON.stringify(params.name.slice(0, 100))}.`);
    const args = params.arguments ?? {};
    for (const { name, required } of prompt.arguments) if (required && !args[name]) throw invalid(`The prompt needs the argument ${name}.`);
    const stray = Object.keys(args).find((name) => !prompt.arguments.some((argument) => argument.name === name));
    if (stray !== undefined) throw invalid(`The prompt has no argument ${JSON.stringify(stray.slice(0, 100))}.`);
    try {
      const text = await prompt.text(args, callFor(context));
      return { description: prompt.description, messages: [{ role: "user" as const, content: { type: "text" as const, text } }] };
    } catch (error) {
      throw protocolError(asCairnError(error));
    }
  });
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
