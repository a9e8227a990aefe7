import { ResourceNotFoundError, type ResourceTemplateType, type Server, type ServerContext } from "@modelcontextprotocol/server";
import { asCairnError } from "../model/errors.ts";
import { protocolError } from "./errors.ts";
import { pageOf } from "./paging.ts";
import type { CallOperation } from "./prompts.ts";

/** Records that a client can attach to a conversation by their address. */
export interface ResourceKind {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly mimeType: string;
  readonly uriTemplate: string;
  /** The ones worth offering unasked, most useful first. It need not be all: any can be read by its address. */
  readonly list: (
    call: CallOperation,
  ) => Promise<readonly { readonly uri: string; readonly name: string; readonly description?: string }[]>;
  /** The text behind an address; `undefined` if the address is not of this kind. */
  readonly read: (uri: URL, call: CallOperation) => Promise<string> | undefined;
}

export function offerResources(
  server: Server,
  kinds: readonly ResourceKind[],
  callFor: (context: ServerContext) => CallOperation,
  pageSize: number,
): void {
  const templates = kinds.map(
    ({ name, title, description, mimeType, uriTemplate }): ResourceTemplateType => ({ name, title, description, mimeType, uriTemplate }),
  );
  server.setRequestHandler("resources/templates/list", ({ params }) => {
    const { items, ...next } = pageOf("templates", templates, params?.cursor, pageSize);
    return { resourceTemplates: items, ...next };
  });
  server.setRequestHandler("resources/list", async ({ params }, context) => {
    const call = callFor(context);
    const listed = await orProtocolError(() => Promise.all(kinds.map((kind) => kind.list(call))));
    const resources = listed.flatMap((found, index) => found.map((one) => ({ ...one, mimeType: kinds[index]!.mimeType })));
    const { items, ...next } = pageOf("resources", resources, params?.cursor, pageSize);
    return { resources: items, ...next };
  });
  server.setRequestHandler("resources/read", async ({ params: { uri } }, context) => {
    const call = callFor(context);
    for (const kind of kinds) {
      const reading = URL.canParse(uri) ? kind.read(new URL(uri), call) : undefined;
      if (!reading) continue;
      const text = await orProtocolError(() => reading, uri);
      return { contents: [{ uri, mimeType: kind.mimeType, text }] };
    }
    throw new ResourceNotFoundError(uri);
  });
}

async function orProtocolError<T>(work: () => Promise<T>, uri?: string): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = asCairnError(thrown);
    throw error.code === "not_found" && uri !== undefined ? new ResourceNotFoundError(uri, error.message) : protocolError(error);
  }
}
