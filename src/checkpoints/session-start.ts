import type { WithCodePath } from "../model/anchor.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { LIMITS } from "../model/limits.ts";
import type { Checkpoints } from "./service.ts";

/** The tag of checkpoints that a hook saved, as opposed to checkpoints that an agent saved deliberately. */
export const AUTOMATIC = "auto";

/** Tokens of full text that a session gets at its start, and lines of other checkpoints of each kind. It can request more. */
const OFFERED_TOKENS = 1_500;
const OFFERED_LINES = 3;

export interface SessionStart extends WithCodePath {
  readonly projectPath: string;
  /** Why the session starts: `compact` after its context was compacted. */
  readonly source?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** Returns a note on the freshness of each record; empty where there is nothing to note. */
export type NoteRecords = (records: readonly Checkpoint[]) => Promise<readonly string[]>;

/** Returns what a session of an agent receives at its start; `undefined` without checkpoints. */
export async function sessionStartText(
  checkpoints: Pick<Checkpoints, "list" | "resume">,
  { projectPath, codePath, source, sessionId }: SessionStart,
  noteRecords: NoteRecords,
): Promise<string | undefined> {
  const { checkpoints: newest, total } = await checkpoints.list({ projectPath, codePath, limit: LIMITS.listMax });
  if (newest.length === 0) return undefined;
  const automatic = newest.filter(({ tags }) => tags.includes(AUTOMATIC));
  const deliberate = newest.filter(({ tags }) => !tags.includes(AUTOMATIC));
  // After a compaction the session has lost its details; its automatic checkpoint holds them.
  const lost = source === "compact" ? automatic.find(({ context }) => context.session_id === sessionId) : undefined;
  const shown = [...new Set([deliberate[0] ?? automatic[0]!, ...(lost ? [lost] : [])])];
  const level = source === "compact" || deliberate[0] ? "full" : "context";
  const others = (some: readonly Checkpoint[]) => some.filter((one) => !shown.includes(one)).slice(0, OFFERED_LINES);
  const offered = [...shown, ...others(deliberate), ...others(automatic)];
  const notes = await noteRecords(offered);
  const noteOf = (one: Checkpoint) => {
    const note = notes[offered.indexOf(one)];
    return note ? ` (${note})` : "";
  };
  const texts = await Promise.all(
    shown.map(async (one) => {
      const maxTokens = Math.floor(OFFERED_TOKENS / shown.length);
      const { text } = await checkpoints.resume({ projectPath, codePath, id: one.id, level, maxTokens });
      return [text, noteOf(one).trim()].filter(Boolean).join("\n\n");
    }),
  );
  const lines = (some: readonly Checkpoint[]) =>
    others(some).map((one) => `- ${one.createdAt.slice(0, 16)}Z ${one.summary.slice(0, 120)} (${one.id})${noteOf(one)}`);
  const section = (title: string, rows: readonly string[]) => (rows.length > 0 ? [`${title}\n${rows.join("\n")}`] : []);
  return [
    `Cairn has ${total} checkpoints of this project. The last one ${deliberate[0] ? "that an agent saved" : "is automatic"}:`,
    ...texts,
    ...section("Earlier:", lines(deliberate)),
    ...section("Saved automatically by hooks:", lines(automatic)),
    "These are notes of earlier sessions; check them against the current files. checkpoint_resume and checkpoint_search return more.",
  ].join("\n\n");
}
