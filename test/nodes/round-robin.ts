import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Balancer {
  readonly url: string;
  /** Requests that each node has answered, by position. */
  readonly answered: readonly number[];
  close(): Promise<void>;
}

/**
 * Balances HTTP requests over nodes in turn. A node that accepts no connection has not seen the request, so the next one gets it. A
 * connection that breaks later is answered with 502: only the client knows whether the request may be repeated.
 */
export async function roundRobin(nodes: readonly string[]): Promise<Balancer> {
  const answered = nodes.map(() => 0);
  let turn = 0;
  const server = createServer(async (incoming, outgoing) => {
    const body = await readBody(incoming);
    const first = turn++;
    for (let attempt = 0; attempt < nodes.length; attempt++) {
      const node = (first + attempt) % nodes.length;
      const outcome = await forward(nodes[node]!, incoming, body, outgoing);
      if (outcome === "answered") answered[node]!++;
      if (outcome !== "not connected") return;
    }
    outgoing.writeHead(502).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Outcome = "answered" | "broken" | "not connected";

function forward(node: string, incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse): Promise<Outcome> {
  return new Promise((resolve) => {
    // A connection of its own: a kept one may have been closed by the node just before.
    const headers = { ...incoming.headers, connection: "close" };
    const upstream = request(node + incoming.url!, { method: incoming.method!, headers, agent: false });
    upstream.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
      answer.on("end", () => resolve("answered"));
    });
    upstream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") return resolve("not connected");
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end();
      resolve("broken");
    });
    outgoing.on("close", () => upstream.destroy()); // a client that left an event stream
    upstream.end(body);
  });
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
}
