import type { ServerContext } from "@modelcontextprotocol/server";
import type { Invocation } from "../operations/invoke.ts";

/** Clients show progress to people; more often than this helps nobody. */
const MIN_INTERVAL_MS = 50;

/** Sends progress to a client that asked for it. The protocol wants it to grow with every message. */
export function progressReporter({ mcpReq }: ServerContext): Invocation["progress"] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = Number.NEGATIVE_INFINITY;
  let sentAt = Number.NEGATIVE_INFINITY;
  return (progress, total, message) => {
    const now = performance.now();
    const finished = total !== undefined && progress >= total;
    if (progress <= last || (!finished && now - sentAt < MIN_INTERVAL_MS)) return;
    last = progress;
    sentAt = now;
    const params = { progressToken, progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
    // A client that went away is noticed by its signal, not here.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  };
}
