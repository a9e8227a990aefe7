import { CairnError } from "../model/errors.ts";

export interface SlotLimits {
  /** Calls of one caller that are in flight. */
  readonly calls: number;
  /** Event streams of one caller that are open: MCP clients keep one for notifications, and calls may be answered by one. */
  readonly streams: number;
}

/** `operation` never answers with a stream, `mounted` may, and `listen` opens a stream for as long as the client likes. */
export type CallKind = "operation" | "mounted" | "listen";

export interface CallerSlots {
  /** Runs a call of this caller, or raises `rate_limited` when the caller holds too much. */
  run(caller: string, kind: CallKind, call: () => Promise<Response>): Promise<Response>;
}

/** Bounds what one caller may hold of the server, so that the requests and connections that are left over serve all others. */
export function callerSlots(limits: SlotLimits): CallerSlots {
  const calls = counter();
  const streams = counter();
  // Half of the streams is left for calls that are answered by one: listening clients must not keep others from calling.
  const streamsMax: Record<CallKind, number> = {
    operation: Number.POSITIVE_INFINITY,
    mounted: limits.streams,
    listen: Math.ceil(limits.streams / 2),
  };
  return {
    async run(caller, kind, call) {
      if (calls.count(caller) >= limits.calls) throw refusal(`${limits.calls} calls in flight`);
      // Checked before the call, because what the call did cannot be undone when its answer turns out to be a stream.
      if (streams.count(caller) >= streamsMax[kind]) throw refusal(`${streamsMax[kind]} event streams open`);
      const end = calls.add(caller);
      try {
        const response = await call();
        return isStream(response) ? untilEnd(response, streams.add(caller)) : response;
      } finally {
        end();
      }
    },
  };
}

/** Counts per caller and forgets callers that have nothing. */
function counter() {
  const counts = new Map<string, number>();
  const count = (caller: string) => counts.get(caller) ?? 0;
  return {
    count,
    /** Returns the function that takes it back, which works once. */
    add(caller: string): () => void {
      counts.set(caller, count(caller) + 1);
      let open = true;
      return () => {
        if (!open) return;
        open = false;
        if (count(caller) === 1) counts.delete(caller);
        else counts.set(caller, count(caller) - 1);
      };
    },
  };
}

function isStream({ body, headers }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** The same response, which calls `ended` when its body was sent, failed, or is no longer read because the client left. */
function untilEnd({ body, status, headers }: Response, ended: () => void): Response {
  const reader = body!.getReader();
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        ended();
        controller.close();
      } catch (error) {
        ended();
        controller.error(error);
      }
    },
    async cancel(reason) {
      ended();
      await reader.cancel(reason);
    },
  });
  return new Response(watched, { status, headers });
}

function refusal(held: string): CairnError {
  return new CairnError("rate_limited", `This caller has ${held} already. Let one of them end, then try again.`, { retryAfterMs: 1_000 });
}
