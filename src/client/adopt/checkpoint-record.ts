import { isAbsolute, relative } from "node:path";
import { framedHash } from "../../model/ids.ts";
import { LIMITS } from "../../model/limits.ts";
import { clip, clipLine } from "../../text/clip.ts";
import { type Redact, redactSecrets } from "../../text/redact.ts";
import { isBlank } from "../../text/untrusted.ts";
import { ADOPTED_TAG, checkpointId, ORIGIN } from "./adopted-id.ts";
import type { AdoptTool, SessionItem } from "./reader.ts";
import type { SessionDigest } from "./session-digest.ts";

/** A checkpoint in the form that `checkpoint_import` takes. */
export interface CheckpointRecord {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  readonly context: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
}

const SUMMARY_CHARS = 300;
const GOAL_CHARS = 1_500;
const REQUEST_CHARS = 400;
const STATE_CHARS = 2_500;
const PATH_CHARS = 160;

/** Makes the checkpoint of a session; `undefined` if the user requested nothing in it. It has the time of the session's end. */
export function checkpointRecord(
  tool: AdoptTool,
  { sessionId: given, digest }: SessionItem,
  { now, redact }: { readonly now: string; readonly redact: Redact },
): CheckpointRecord | undefined {
  const { goal, endedAt = digest.startedAt ?? now, branch, version, startedAt, fileCount } = digest;
  const sessionId = plainId(given);
  const summary = clipLine(redact, goal ?? "", SUMMARY_CHARS);
  if (isBlank(summary)) return undefined;
  const description = clip(redact, describe(digest, redact), LIMITS.descriptionChars);
  const facts = {
    [ORIGIN.tool]: tool,
    [ORIGIN.session]: sessionId,
    [ORIGIN.version]: framedHash(summary, description, endedAt, branch ?? "").slice(0, 16),
    tool_version: version,
    branch,
    started_at: startedAt,
    ended_at: endedAt,
    files_written: fileCount > 0 ? String(fileCount) : undefined,
  };
  const context = Object.entries(facts).flatMap(([key, value]) =>
    value ? [[key, clipLine(redact, value, LIMITS.contextValueChars)]] : [],
  );
  return {
    id: checkpointId(tool, sessionId),
    summary,
    description,
    context: Object.fromEntries(context),
    tags: [ADOPTED_TAG, tool],
    created_at: endedAt,
    updated_at: endedAt,
  };
}

/**
 * Returns an id that is stored unchanged: an unusual one is replaced by its hash, so that the record can be recognised later. Ignores
 * `redaction.allow`: the id must not depend on the configuration.
 */
function plainId(sessionId: string): string {
  const isPlain = /^[\w.-]{1,100}$/.test(sessionId) && redactSecrets(`${ORIGIN.session}=${sessionId}`).found.length === 0;
  return isPlain ? sessionId : `hash-${framedHash(sessionId).slice(0, 20)}`;
}

function describe({ goal = "", requests, decisions, files, fileCount, folder, lastState }: SessionDigest, redact: Redact): string {
  const list = (items: readonly string[]) => items.map((item) => `- ${item}`).join("\n");
  const more = fileCount > files.length ? `\n- and ${fileCount - files.length} more` : "";
  return [
    `Goal:\n${clip(redact, goal, GOAL_CHARS)}`,
    ...(requests.length > 0 ? [`Last requests:\n${list(requests.map((request) => clipLine(redact, request, REQUEST_CHARS)))}`] : []),
    ...(decisions.length > 0 ? [`Decisions:\n${list(decisions.map((decision) => clipLine(redact, decision, REQUEST_CHARS)))}`] : []),
    ...(files.length > 0
      ? [`Files written:\n${list(files.map((path) => clipLine(redact, shorten(path, folder), PATH_CHARS)))}${more}`]
      : []),
    ...(lastState ? [`Last state:\n${clip(redact, lastState, STATE_CHARS)}`] : []),
  ].join("\n\n");
}

/** Returns a path below the folder as relative. */
function shorten(path: string, folder: string | undefined): string {
  if (folder === undefined || !isAbsolute(path)) return path;
  const below = relative(folder, path);
  return below === "" || below.startsWith("..") ? path : below;
}
