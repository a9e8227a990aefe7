import { ApiError, call, MAX_TOKENS } from "../../api/call.ts";
import type { Checkpoint } from "./checkpoint-feed.ts";

/** Records that are read when it is not known which one changed. */
const NEWEST = 20;

/** Reads what an event is about, oldest first: one checkpoint, or the newest ones of the project. A checkpoint that is gone is left out. */
export async function readChanged(project: string, id: string | undefined): Promise<readonly Checkpoint[]> {
  try {
    if (id !== undefined) return [await call("checkpoint_get", { project_path: project, id, max_tokens: MAX_TOKENS })];
    const { checkpoints } = await call("checkpoint_list", {
      ...{ project_path: project, limit: NEWEST, sort_by: "updated_at", max_tokens: MAX_TOKENS },
    });
    return checkpoints.toReversed();
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") return [];
    throw error;
  }
}
