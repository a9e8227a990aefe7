import type { Checkpoint } from "../model/checkpoint.ts";
import type { CheckpointStore } from "../ports/checkpoint-store.ts";
import type { Storage } from "../ports/storage.ts";

/** The checkpoints of one session of an agent. */
export interface AgentSession {
  readonly sessionId: string;
  /** The branch of its newest checkpoint. */
  readonly branch?: string | undefined;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly checkpoints: number;
  /** The summary of its newest checkpoint. */
  readonly summary: string;
}

export interface SessionList {
  readonly sessions: readonly AgentSession[];
  /** False if older checkpoints were not looked at, which may have further sessions. */
  readonly complete: boolean;
}

/** Checkpoints that are read at once, and in all, for one list of sessions. */
const PAGE = 100;
const CHECKPOINTS_MAX = 2_000;

/** Groups the newest checkpoints of a project by the session that saved them, the latest session first. */
export async function listSessions(
  storage: Storage,
  { projectPath, limit = 20 }: { readonly projectPath: string; readonly limit?: number | undefined },
): Promise<SessionList> {
  const store = (await storage.find(projectPath))?.checkpoints;
  if (!store) return { sessions: [], complete: true };
  const groups = new Map<string, Checkpoint[]>();
  const complete = await eachNewest(store, (checkpoint) => {
    const { session_id: id } = checkpoint.context;
    if (id === undefined) return;
    const group = groups.get(id);
    if (group) group.push(checkpoint);
    else groups.set(id, [checkpoint]);
  });
  const sessions = [...groups].map(
    ([sessionId, group]): AgentSession => ({
      sessionId,
      branch: group[0]!.context.branch,
      firstAt: group.at(-1)!.createdAt,
      lastAt: group[0]!.createdAt,
      checkpoints: group.length,
      summary: group[0]!.summary,
    }),
  );
  return { sessions: sessions.slice(0, limit), complete };
}

/** Passes the newest checkpoints, newest first. Returns whether these were all. */
async function eachNewest(store: CheckpointStore, use: (checkpoint: Checkpoint) => void): Promise<boolean> {
  let after: { at: string; id: string } | undefined;
  for (let read = 0; read < CHECKPOINTS_MAX; read += PAGE) {
    const { checkpoints } = await store.list({ limit: PAGE, offset: 0, sortBy: "created_at", after });
    checkpoints.forEach(use);
    const last = checkpoints.at(-1);
    if (!last || checkpoints.length < PAGE) return true;
    after = { at: last.createdOrder, id: last.id };
  }
  return false;
}
