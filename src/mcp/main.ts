import { Writable } from "node:stream";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { McpServerOptions } from "./server.ts";
import { mcpServerFactory } from "./server.ts";
import { stdioTransport } from "./stdio-transport.ts";

/** How often the parent is looked for. A wrapper that was killed leaves the pipe open, so the end of the input is not enough. */
const PARENT_CHECK_MS = 1_000;

export interface McpStdioOptions extends McpServerOptions {
  /** Hears of errors of the connection; must not write to stdout. */
  readonly onError?: ((error: Error) => void) | undefined;
  /** Called when the client is gone and its calls are answered or given up, before Cairn is closed. */
  readonly onEnded?: (() => void) | undefined;
}

/**
 * Serves MCP over this process's stdin and stdout until the client goes away, then closes Cairn. Whatever else writes to
 * stdout meanwhile goes to stderr, because one stray line would break the protocol.
 */
export async function runMcpStdio(options: McpStdioOptions): Promise<void> {
  const transport = stdioTransport({ input: process.stdin, output: takeStdout() });
  const handle = serveStdio(mcpServerFactory(options), { transport, ...(options.onError && { onerror: options.onError }) });

  await new Promise<void>((resolve) => {
    // serveStdio has set its own hook; the connection ends by either side through it.
    const served = transport.onclose;
    transport.onclose = () => {
      served?.();
      resolve();
    };
    // Asked to stop, it answers what it has read, as if the client had closed the pipe; asked again, it stops at once.
    const stop = () => (process.stdin.destroyed ? void handle.close() : void process.stdin.destroy());
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && !process.stdin.destroyed && stop(), PARENT_CHECK_MS).unref();
  });
  options.onEnded?.();
  await options.cairn.close();
  process.stdin.destroy();
}

/** Keeps the real stdout for the protocol and sends everyone else's output to stderr. */
function takeStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  const protocol = new Writable({ decodeStrings: false, write: (chunk, encoding, done) => void write(chunk, encoding, done) });
  process.stdout.on("error", (error) => protocol.destroy(error));
  return protocol;
}
