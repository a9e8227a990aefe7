import { signal } from "@preact/signals";
import { send } from "../api/call.ts";
import { emit, type StoreEvent } from "../api/events.ts";
import { eventParser } from "../api/parse-events.ts";
import { session } from "../api/session.ts";
import { coalesce } from "./coalesce.ts";
import { loadProjects, type ProjectEntry, projects } from "./projects.ts";

/** Whether changes of other programs arrive. `broken` while the server does not answer. */
export const live = signal<"on" | "broken">("on");

/** Milliseconds in which events are collected: a burst becomes one update of the page. */
const SETTLE_MS = 200;
/** Milliseconds before the next attempt, doubled by each that fails. */
const RETRY = { firstMs: 500, maxMs: 30_000 };

/** Follows the changes that other programs make, and passes them on as events, until the returned function is called. A hidden tab does not follow. */
export function followChanges(): () => void {
  let parser = eventParser(session.value?.event_id);
  let connection: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let delayMs = RETRY.firstMs;
  let isStopped = false;
  let collected: StoreEvent[] = [];
  let settling: ReturnType<typeof setTimeout> | undefined;

  function collect(event: StoreEvent): void {
    collected.push(event);
    settling ??= setTimeout(() => {
      const events = coalesce(collected);
      collected = [];
      settling = undefined;
      for (const one of events) emit(one);
    }, SETTLE_MS);
  }

  function receive(type: string, data: string): void {
    if (type === "reset") void emitMissed();
    if (type !== "change") return;
    const { kind, action, id, project_path: project } = JSON.parse(data);
    collect({ kind, action, ...(id !== undefined && { id }), ...(project !== undefined && { project }) });
  }

  async function read(signal: AbortSignal): Promise<void> {
    const lastId = parser.lastId();
    parser = eventParser(lastId);
    const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
    const response = await send("GET", "/v1/events", undefined, signal, headers);
    if (response.status === 401) void loadProjects(); // asks to sign in again
    if (!response.ok || !response.body) throw new Error(`The server answered ${response.status}.`);
    if (live.value === "broken") void loadProjects();
    live.value = "on";
    delayMs = RETRY.firstMs;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const { type, data: text } of parser.push(value)) receive(type, text);
    }
  }

  async function connect(): Promise<void> {
    if (isStopped || connection || document.visibilityState === "hidden") return;
    clearTimeout(retry);
    const controller = new AbortController();
    connection = controller;
    try {
      await read(controller.signal);
    } catch {
      if (!controller.signal.aborted) {
        live.value = "broken";
        delayMs = Math.min(RETRY.maxMs, 2 * delayMs);
      }
    }
    if (connection === controller) connection = undefined;
    if (!controller.signal.aborted) retry = setTimeout(connect, delayMs);
  }

  /** Ends the connection of a hidden tab: a browser has few per server. The next one resumes after the last event. */
  function onVisibility(): void {
    if (document.visibilityState !== "hidden") return void connect();
    connection?.abort();
    connection = undefined;
  }

  document.addEventListener("visibilitychange", onVisibility);
  void connect();
  return () => {
    isStopped = true;
    clearTimeout(retry);
    clearTimeout(settling);
    connection?.abort();
    document.removeEventListener("visibilitychange", onVisibility);
  };
}

/** Emits events for what changed while events were lost: the projects whose figures differ. */
async function emitMissed(): Promise<void> {
  const before = projects.value;
  await loadProjects();
  if (before && projects.value) emitProjectChanges(before, projects.value);
  emit({ kind: "run", action: "changed" });
  emit({ kind: "code", action: "indexed" });
}

function emitProjectChanges(before: readonly ProjectEntry[], after: readonly ProjectEntry[]): void {
  const known = new Map(before.map((entry) => [entry.project_path, entry]));
  for (const { project_path, checkpoints, knowledge, last_activity_at } of after) {
    const old = known.get(project_path);
    if (old?.last_activity_at === last_activity_at && old?.checkpoints === checkpoints && old?.knowledge === knowledge) continue;
    emit({ kind: "checkpoint", action: "changed", project: project_path });
    emit({ kind: "knowledge", action: "changed", project: project_path });
  }
}
