import { CairnError } from "../../model/errors.ts";
import { isObject, type JsonObject } from "./json-file.ts";

/** The command by which a client starts Cairn: a program and its first arguments. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
}

/** The events of `cairn hook`. */
export const HOOK_NAMES = ["session-start", "pre-compact", "post-compact", "session-end"] as const;
export type HookName = (typeof HOOK_NAMES)[number];

/** A client that runs commands at events of a session: where it reads them, and what it calls the events. */
export interface HookClient {
  readonly name: "claude" | "codex" | "gemini";
  readonly file: string;
  readonly events: Readonly<Record<string, HookName>>;
  /** Until the client ends a hook. Loading the local model takes seconds on a slow machine. */
  readonly timeout: number;
}

const COMPACTING = {
  SessionStart: "session-start",
  PreCompact: "pre-compact",
  PostCompact: "post-compact",
  SessionEnd: "session-end",
} as const;

export const HOOK_CLIENTS: readonly HookClient[] = [
  { name: "claude", file: ".claude/settings.json", events: COMPACTING, timeout: 60 },
  { name: "codex", file: ".codex/hooks.json", events: COMPACTING, timeout: 60 },
  {
    name: "gemini",
    file: ".gemini/settings.json",
    events: { SessionStart: "session-start", PreCompress: "pre-compact", SessionEnd: "session-end" },
    timeout: 60_000, // milliseconds, unlike the others
  },
];

/** Matches the command of Cairn: its name, or the start file of a checkout. */
const OURS = /cairn|bundle[\\/]main\.cjs/;

/** Returns `.mcp.json` with Cairn in it. */
export function withServer(content: JsonObject, { command, args }: Launch): JsonObject {
  const servers = group(content, "mcpServers");
  if (servers.cairn !== undefined && !isOurServer(servers.cairn))
    throw new CairnError(
      "conflict",
      'There is a server called "cairn" that does not start Cairn. Rename it, then try again. Nothing was changed.',
    );
  return {
    ...content,
    mcpServers: { ...servers, cairn: { ...(isObject(servers.cairn) && servers.cairn), command, args: [...args, "mcp"] } },
  };
}

export function withoutServer(content: JsonObject): JsonObject {
  const { cairn, ...others } = group(content, "mcpServers");
  if (!isOurServer(cairn)) return content;
  const { mcpServers: _, ...rest } = content;
  return Object.keys(others).length > 0 ? { ...content, mcpServers: others } : rest;
}

function isOurServer(entry: unknown): boolean {
  return isObject(entry) && Array.isArray(entry.args) && entry.args.includes("mcp") && OURS.test([entry.command, ...entry.args].join(" "));
}

/** Returns the settings of a client with the hooks of Cairn, each once. */
export function withHooks(content: JsonObject, launch: Launch, { events, timeout }: HookClient = HOOK_CLIENTS[0]!): JsonObject {
  const hooks = group(withoutHooks(content), "hooks");
  const ours = Object.entries(events).map(([event, name]) => {
    const command = [launch.command, ...launch.args, "hook", name].map(quoteWord).join(" ");
    return [event, [...list(hooks, event), { hooks: [{ type: "command", command, timeout }] }]];
  });
  return { ...content, hooks: { ...hooks, ...Object.fromEntries(ours) } };
}

/** Removes the hooks of Cairn and objects that become empty; everything else stays. */
export function withoutHooks(content: JsonObject): JsonObject {
  if (!("hooks" in content)) return content;
  const hooks: JsonObject = {};
  for (const [event, matchers] of Object.entries(group(content, "hooks"))) {
    if (!Array.isArray(matchers)) {
      hooks[event] = matchers;
      continue;
    }
    const kept = matchers.flatMap((matcher) => {
      if (!isObject(matcher) || !Array.isArray(matcher.hooks)) return [matcher];
      const others = matcher.hooks.filter((hook) => !isOurHook(hook));
      if (others.length === matcher.hooks.length) return [matcher];
      return others.length > 0 ? [{ ...matcher, hooks: others }] : [];
    });
    if (kept.length > 0 || matchers.length === 0) hooks[event] = kept;
  }
  const { hooks: before, ...rest } = content;
  return Object.keys(hooks).length > 0 || Object.keys(before as JsonObject).length === 0 ? { ...content, hooks } : rest;
}

function isOurHook(hook: unknown): boolean {
  return (
    isObject(hook) &&
    typeof hook.command === "string" &&
    / hook (session-start|pre-compact|post-compact|session-end)$/.test(hook.command) &&
    OURS.test(hook.command)
  );
}

function group(content: JsonObject, key: string): JsonObject {
  const value = content[key] ?? {};
  if (!isObject(value))
    throw new CairnError("conflict", `"${key}" is not an object, so the file was not changed. Repair it, then try again.`);
  return value;
}

function list(hooks: JsonObject, event: string): readonly unknown[] {
  const value = hooks[event] ?? [];
  if (!Array.isArray(value))
    throw new CairnError("conflict", `"hooks.${event}" is not a list, so the file was not changed. Repair it, then try again.`);
  return value;
}

/** For a shell. */
function quoteWord(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : `"${word.replace(/["\\$`]/g, "\\$&")}"`;
}
