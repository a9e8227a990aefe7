import type { WorkerEvent } from "../../runs/worker-options.ts";
import { redactMessage } from "../../text/redact-message.ts";

interface DescribedEvent {
  readonly text: string;
  /** The same for programs. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether it belongs on stderr. */
  readonly problem: boolean;
}

/** Describes an event of a worker on one line, and as fields. */
export function describeEvent(event: WorkerEvent): DescribedEvent {
  switch (event.type) {
    case "claimed": {
      const { runId, graph, status } = event;
      const verb = status === "running" ? "taken over" : status === "answered" ? "continues" : "started";
      return { text: `${runId}  ${verb}  ${graph}`, fields: { type: "claimed", run_id: runId, graph, status }, problem: false };
    }
    case "ended": {
      const { runId, graph, status } = event;
      return { text: `${runId}  ${status}  ${graph}`, fields: { type: "ended", run_id: runId, graph, status }, problem: false };
    }
    case "failed": {
      const { runId, graph, retryInMs } = event;
      const message = messageOf(event.error);
      const again = retryInMs === undefined ? "" : ` Tries again in ${Math.ceil(retryInMs / 1_000)} s.`;
      return {
        text: `${runId}  failed  ${graph}: ${message}${again}`,
        fields: { type: "failed", run_id: runId, graph, message, ...(retryInMs !== undefined && { retry_in_ms: retryInMs }) },
        problem: true,
      };
    }
    case "graph_changed": {
      const { graph, runIds } = event;
      const text = `${runIds.length} runs of another version of the graph ${JSON.stringify(graph)} wait, such as ${runIds[0]}. This worker does not continue them: start one with their version.`;
      return { text, fields: { type: "graph_changed", graph, run_ids: runIds }, problem: true };
    }
    case "drained": {
      const { inbox, done, failed, dead } = event;
      const text = `${inbox}  ${done} done${failed > 0 ? `, ${failed} failed` : ""}${dead > 0 ? `, ${dead} dead` : ""}`;
      return { text, fields: { type: "drained", inbox, done, failed, dead }, problem: false };
    }
    case "problem": {
      const message = messageOf(event.error);
      return { text: message, fields: { type: "problem", message }, problem: true };
    }
  }
}

function messageOf(error: unknown): string {
  return redactMessage(error instanceof Error ? error.message : String(error));
}
