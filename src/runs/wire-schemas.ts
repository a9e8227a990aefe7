import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import type { CallContext } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import type { MaySee } from "./service.ts";

export const RunId = text(LIMITS.runKeyChars, 1).describe("The id under which the run was started.");
export const Status = z.enum(["queued", "answered", "running", "paused", "completed", "failed", "cancelled"]);

export const RunOutput = z.object({
  run_id: z.string(),
  graph: z.string(),
  fingerprint: z.string(),
  project: z.string().optional(),
  status: Status,
  reason: z.string().optional(),
  parent: z.object({ run_id: z.string(), sequence: z.int() }).optional(),
  last_sequence: z.int(),
  lease_until: z.string().optional(),
  ready_at: z.string().optional().describe("When a worker may continue the run, if it is queued or answered."),
  claims: z.int().describe("Consecutive claims by workers without a new checkpoint."),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});

export const StepOutput = z.object({
  sequence: z.int(),
  node_id: z.string(),
  kind: z.enum(["start", "node", "failed", "pause", "answer", "rewind"]),
  branch: z.string(),
  step: z.int(),
  attempt: z.int(),
  next_node: z.string().optional(),
  previous_node: z.string().optional(),
  timestamp: z.iso.datetime(),
  size: z.int().describe("Bytes of the state."),
  note: z.string().optional(),
});

/** Whether a worker continues the run. */
export const LISTENING = {
  listening: z.int().describe("Workers that listen for this version of the graph."),
  hint: z.string().optional().describe("What to do if none listens."),
};

/** Returns whether the caller may see a run: its project must be accessible. Runs without a project need access to all projects. */
export function maySee({ mayTouch, allProjects }: CallContext): MaySee {
  return (project) => (project === null ? allProjects : mayTouch(project));
}

/** Omits null fields on the wire, because some clients cannot read nullable types. */
export function present(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(present);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, present(item)]])));
}
