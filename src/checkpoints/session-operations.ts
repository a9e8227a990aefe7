import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectPath } from "../operations/schemas.ts";

export const sessionList = operation({
  name: "session_list",
  summary: "List the sessions of agents that saved checkpoints, the latest first.",
  input: z.strictObject({ project_path: ProjectPath, limit: z.int().min(1).max(LIMITS.listMax).default(20) }),
  output: z.object({
    sessions: z.array(
      z.object({
        session_id: z.string(),
        branch: z.string().optional(),
        first_at: z.string(),
        last_at: z.string(),
        checkpoints: z.int(),
        summary: z.string().describe("Of its newest checkpoint."),
      }),
    ),
    complete: z.boolean().describe("False if older checkpoints were not looked at."),
  }),
  access: "read",
  toolset: "admin",
  cli: {
    examples: ["cairn session list"],
    view: { table: "sessions", columns: ["session_id", "last_at", "checkpoints", "branch", "summary"], optional: ["branch"] },
  },
  render: ({ sessions }) =>
    sessions.map(({ session_id, last_at, checkpoints, summary }) => `${last_at}  ${session_id}  ${checkpoints}  ${summary}`).join("\n") ||
    "No session saved a checkpoint.",
  run: (cairn, input) => cairn.checkpoints.sessions(input),
});

export const sessionPreview = operation({
  name: "session_preview",
  summary: "Show what the next session of an agent receives at its start.",
  description: "The hook `session-start` gives this text to the agent. It also notes files that changed on the agent's machine.",
  input: z.strictObject({ project_path: ProjectPath }),
  output: z.object({ text: z.string().optional().describe("Absent without checkpoints."), tokens: z.int() }),
  access: "read",
  toolset: "admin",
  cli: { examples: ["cairn session preview"] },
  render: ({ text }) => text ?? "Nothing: this project has no checkpoint.",
  run: (cairn, input) => cairn.checkpoints.sessionStart(input),
});

export const sessionOperations = [sessionList, sessionPreview];
