import { setTimeout as sleep } from "node:timers/promises";
import type { IndexJobs } from "../client/jobs/index-jobs.ts";
import type { Config } from "../config/schema.ts";
import type { HttpServer } from "../http/serve.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { withProperties } from "../model/once.ts";
import { openFromConfig } from "../open/open-from-config.ts";
import { storageKind } from "../open/open-options.ts";
import type { Cairn } from "../operations/cairn.ts";
import { localToken } from "../stores/file/local-token.ts";
import { serverRecord } from "../stores/file/server-record.ts";

const STREAM_GRACE_MS = 1_000;
/** Milliseconds that the start waits for the answer of the storage. */
const START_CHECK_MS = 15_000;

export interface LocalServer extends HttpServer {
  /** Path of the local token. */
  readonly tokenFile: string;
}

/** Starts the HTTP server: the console, the API, the API page, and MCP under `/mcp`. */
export async function startServer(config: Config): Promise<LocalServer> {
  const [{ serve }, { mcpHttpHandler }, { mcpServerFactory }, { operations }, { watch }, { servedCodeIndex }] = await Promise.all([
    import("../http/serve.ts"),
    import("../mcp/http.ts"),
    import("../mcp/server.ts"),
    import("../operations/list.ts"),
    import("./watch.ts"),
    import("../client/jobs/served-index.ts"),
  ]);
  const { http } = config;
  const token = localToken(config);
  await token.readOrCreate(); // the server does not start with a token that other users can read
  const { log, telemetry } = await watch(config, { prometheus: true });
  const cairn = await openFromConfig(config, "lead");
  await refuseUnusable(cairn).catch(async (error) => {
    await cairn.close();
    await telemetry.close();
    throw error;
  });
  await cairn.indexing.start(); // continues the jobs of a server that crashed
  const indexJobs = await openIndexJobs(config, cairn);
  const mcp = mcpHttpHandler(mcpServerFactory({ cairn, operations, toolsets: config.mcp.toolsets, log }), {
    onError: (error) => log.warn({ err: error }, "An MCP connection failed."),
    allowedOrigins: http.allowedOrigins.map((origin) => new URL(origin).hostname),
    takeOver: storageKind({ storage: config.storage }) === "postgres",
  });
  try {
    const server = await serve({
      cairn: withProperties(cairn, { indexJobs }),
      operations: [...operations, servedCodeIndex],
      host: http.host,
      port: http.port,
      localToken: () =>
        token.read().catch((error: unknown) => {
          log.warn({ err: error }, "The local token is rejected until its file is usable again. API keys still work.");
          return undefined;
        }),
      trustedProxies: http.trustedProxies,
      allowedOrigins: http.allowedOrigins.map((origin) => new URL(origin).origin),
      rateLimit: http.rateLimit,
      metrics: () => telemetry.prometheus(),
      log,
      mount: { "/mcp": (request, { caller }) => mcp.fetch(request, caller) },
    });
    const record = serverRecord(config);
    await record.write(loopbackUrl(server)).catch((error: unknown) => log.warn({ err: error }, "`cairn ui` will not find this server."));
    return {
      ...server,
      tokenFile: token.path,
      async close() {
        await record.remove().catch(() => {}); // a record of a server that ended is not used
        const closed = server.close();
        // Calls in flight may finish; streams that clients keep open for notifications never end.
        await Promise.race([closed, sleep(STREAM_GRACE_MS, undefined, { ref: false })]);
        await mcp.close();
        await closed;
        await indexJobs.close();
        await cairn.close();
        await telemetry.close();
      },
    };
  } catch (error) {
    await mcp.close();
    await cairn.close();
    await telemetry.close();
    throw error;
  }
}

/** Raises what no waiting can repair: a connection pooler or a Citus that does not fit. A database that is down may come back, and does not stop the start. */
async function refuseUnusable(cairn: Cairn): Promise<void> {
  const check = cairn.check().catch((error: unknown) => {
    if (error instanceof CairnError && ["pooler", "citus"].includes(String(error.details?.kind))) throw error;
  });
  await Promise.race([check, sleep(START_CHECK_MS, undefined, { ref: false })]);
}

/** Returns the jobs that index folders of this machine for the user who runs the server. They write to the server's own storage. */
async function openIndexJobs(config: Config, cairn: Cairn): Promise<IndexJobs> {
  const [{ indexJobs }, { launcher }] = await Promise.all([import("../client/jobs/index-jobs.ts"), import("../client/jobs/launch.ts")]);
  const own = { ...config, api: { ...config.api, url: undefined } };
  return indexJobs({
    dataDir: config.dataDir,
    launch: launcher(config.storage === "memory" ? "here" : "thread", own, cairn), // no other thread can see storage in memory
    counts: (projectPath) => cairn.code.stats({ projectPath }),
    maxRunning: LIMITS.servedIndexJobs,
  });
}

/** Returns the address for this machine's own browser: a server on all addresses also listens on loopback. */
function loopbackUrl({ url, port }: HttpServer): string {
  return /^http:\/\/(0\.0\.0\.0|\[::\])/.test(url) ? `http://127.0.0.1:${port}` : url;
}
