import { framedHash } from "../../model/ids.ts";
import { LIMITS } from "../../model/limits.ts";
import type { AdoptTool } from "./reader.ts";

/** The tag of every adopted checkpoint, next to the name of its tool. */
export const ADOPTED_TAG = "adopted";

/** Keys of the context that identify an adopted checkpoint. */
export const ORIGIN = { tool: "adopted_from", session: "adopted_id", version: "adopted_version" } as const;

/** Returns the id of the checkpoint of a session: the same on every run, so that a session is adopted once. Has the form of a UUID. */
export function checkpointId(tool: string, sessionId: string): string {
  const hex = framedHash("adopted checkpoint", tool, sessionId);
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join("-");
}

/** Returns whether a checkpoint was adopted: its id follows from its origin, which no other way of saving produces. */
export function isAdopted({ id, context }: { readonly id: string; readonly context: Readonly<Record<string, string>> }): boolean {
  const { [ORIGIN.tool]: tool, [ORIGIN.session]: sessionId } = context;
  return tool !== undefined && sessionId !== undefined && id === checkpointId(tool, sessionId);
}

const SOURCE = "adopt:";

/** Returns the name of the import that owns the notes of a unit. */
export function noteSource(tool: AdoptTool, path: string): string {
  const readable = `${SOURCE}${tool}:${path}`;
  return readable.length <= LIMITS.labelChars ? readable : `${SOURCE}${tool}:${framedHash(path).slice(0, 32)}`;
}

export function isNoteSource(source: string): boolean {
  return source.startsWith(SOURCE);
}

/** Returns the id of the knowledge record of a note. */
export function noteId(tool: AdoptTool, path: string, key: string): string {
  return `adopted-${framedHash("adopted note", tool, path, key).slice(0, 32)}`;
}
