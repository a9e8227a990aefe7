import { call, MAX_TOKENS, type Output } from "../../api/call.ts";
import type { NextPage } from "../../state/feed.ts";

export type Checkpoint = Output<"checkpoint_list">["checkpoints"][number];

export interface TimelineFilter {
  readonly tags?: string[];
  readonly created_from?: string;
  readonly created_before?: string;
  /** Facts that the context must have, such as a branch. */
  readonly context?: Record<string, string>;
  /** Words that the record must have. */
  readonly text?: string;
}

const PAGE = 50;

/** Returns the checkpoints that fit, newest first: of one project, or of all. */
export function timelinePages(project: string | undefined, filter: TimelineFilter): NextPage<Checkpoint> {
  let cursor: string | undefined;
  let isEnd = false;
  return async (signal) => {
    if (isEnd) return [];
    const input = { ...filter, limit: PAGE, ...(cursor && { cursor }) };
    const page =
      project === undefined
        ? await call("checkpoint_list_all", input, signal)
        : await call("checkpoint_list", { project_path: project, ...input, max_tokens: MAX_TOKENS }, signal);
    cursor = page.next_cursor;
    isEnd = cursor === undefined;
    return page.checkpoints;
  };
}
