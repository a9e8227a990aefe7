import { z } from "zod";
import { decodeCursor, startId } from "../events/cursor.ts";
import type { StreamMessage } from "../events/follower.ts";
import type { EventStream, Events } from "../events/service.ts";
import { CairnError } from "../model/errors.ts";
import type { Caller } from "../operations/invoke.ts";
import { ProjectId } from "../operations/schemas.ts";
import { readQuery } from "./input.ts";

export interface EventStreamOptions {
  readonly events: Events;
  /** Ends all streams: the server shuts down. */
  readonly closing?: AbortSignal | undefined;
  /** Milliseconds between two comments while nothing happens. Proxies close streams that are silent. */
  readonly heartbeatMs?: number | undefined;
  /** Milliseconds after which a client that does not read is dropped. */
  readonly stalledMs?: number | undefined;
  /** Milliseconds after which a stream ends and the client connects again, so that a revoked key loses its access. */
  readonly lifetimeMs?: number | undefined;
}

export const EVENT_PATH = "/v1/events";
export const EventQuery = z.strictObject({
  project_path: z
    .array(ProjectId)
    .max(100)
    .optional()
    .describe("Only events of these projects. May be repeated. Default: all projects of the caller."),
});

const HEARTBEAT_MS = 15_000;
const STALLED_MS = 60_000;
const LIFETIME_MS = 300_000;
/** Milliseconds that a client waits before it connects again. */
const RETRY_MS = 1_000;
/** Characters of a `Last-Event-ID`. */
const ID_CHARS = 12_000;

/** Answers with the changes of the caller's projects as server-sent events. */
export async function openEventStream(request: Request, caller: Caller, options: EventStreamOptions): Promise<Response> {
  const projects = projectsOf(request, caller);
  const lastEventId = request.headers.get("last-event-id") ?? undefined;
  if (lastEventId !== undefined && lastEventId.length > ID_CHARS)
    throw new CairnError("invalid_input", "Last-Event-ID: is too long. Use the id of the last event, or leave it out.");
  const readyId = lastEventId !== undefined && decodeCursor(lastEventId) ? lastEventId : startId(Date.now());
  const stream = await options.events.follow({ projects, lastEventId });
  return new Response(body(stream, readyId, request.signal, options), {
    headers: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
  });
}

function projectsOf(request: Request, caller: Caller): "all" | readonly string[] {
  const parsed = EventQuery.safeParse(readQuery(EventQuery, new URL(request.url).searchParams));
  if (!parsed.success)
    throw new CairnError("invalid_input", parsed.error.issues.map(({ path, message }) => [...path, message].join(": ")).join("; "));
  const { project_path: chosen } = parsed.data;
  if (chosen === undefined) return caller.projects;
  const { projects } = caller;
  if (projects !== "all" && chosen.some((project) => !projects.includes(project)))
    throw new CairnError("forbidden", "This key is not valid for that project. Use a key of the project.");
  return chosen;
}

/** Reads the next messages only when the client has taken the last ones, so a slow client costs a page and no more. */
function body(stream: EventStream, readyId: string, client: AbortSignal, options: EventStreamOptions): ReadableStream<Uint8Array> {
  const { closing, heartbeatMs = HEARTBEAT_MS, stalledMs = STALLED_MS, lifetimeMs = LIFETIME_MS } = options;
  const encoder = new TextEncoder();
  const ended = new AbortController();
  const end = () => ended.abort();
  const lifetime = setTimeout(end, lifetimeMs);
  let stalled: NodeJS.Timeout | undefined;
  let lastId = readyId;

  function release(): void {
    clearTimeout(lifetime);
    clearTimeout(stalled);
    closing?.removeEventListener("abort", end);
    client.removeEventListener("abort", end);
    ended.abort();
    stream.close();
  }

  /** Drops a client that does not ask for more. The last message names the id to resume after. */
  function watch(controller: ReadableStreamDefaultController<Uint8Array>): void {
    stalled = setTimeout(() => {
      controller.enqueue(encoder.encode(`event: dropped\ndata: ${JSON.stringify({ resume_after: lastId })}\n\n`));
      release();
      controller.close();
    }, stalledMs);
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        closing?.addEventListener("abort", end, { once: true });
        client.addEventListener("abort", end, { once: true });
        if (closing?.aborted || client.aborted) end();
        controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\nevent: ready\nid: ${readyId}\ndata: {}\n\n`));
        watch(controller);
      },
      async pull(controller) {
        clearTimeout(stalled);
        try {
          const messages = await stream.next(heartbeatMs, ended.signal);
          if (messages.length > 0) lastId = messages.at(-1)!.id;
          if (messages.length > 0) controller.enqueue(encoder.encode(messages.map(format).join("")));
          else if (!ended.signal.aborted) controller.enqueue(encoder.encode(": heartbeat\n\n"));
          if (ended.signal.aborted) {
            release();
            controller.close();
            return;
          }
          watch(controller);
        } catch (error) {
          release();
          controller.error(error);
        }
      },
      cancel: release,
    },
    { highWaterMark: 1 },
  );
}

function format(message: StreamMessage): string {
  return `event: ${message.type}\nid: ${message.id}\ndata: ${JSON.stringify(dataOf(message))}\n\n`;
}

function dataOf(message: StreamMessage): Record<string, unknown> {
  if (message.type === "reset") return message.project === undefined ? {} : { project_path: message.project };
  const { kind, action, id, project, at, status, sequence } = message.event;
  return {
    kind,
    action,
    ...(id !== "" && { id }),
    ...(project !== undefined && { project_path: project }),
    at,
    ...(status !== undefined && { status }),
    ...(sequence !== undefined && { sequence }),
  };
}
