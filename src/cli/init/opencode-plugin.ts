import type { Launch } from "./entries.ts";

/** The place of the plugin in a project. opencode loads every file in this folder. */
export const OPENCODE_PLUGIN = ".opencode/plugin/cairn.js";

/** The first line of the file: `cairn init` replaces and removes only a file that starts with it. */
export const OPENCODE_MARK = "// Written by `cairn init --hooks`. Removed by `cairn init --remove`.";

/**
 * Returns the plugin that runs `cairn hook` at the events of opencode. opencode has no transcript file and no end of a session, so the plugin
 * sends the messages, and saves whenever the session becomes idle; a later save of the session replaces it.
 */
export function opencodePlugin({ command, args }: Launch): string {
  return `${OPENCODE_MARK}\nimport { spawn } from "node:child_process";\n\nconst COMMAND = ${JSON.stringify([command, ...args, "hook"])};\n${PLUGIN}`;
}

const PLUGIN = `
/** Messages, and characters of each, that a hook gets: more than it stores, so that it redacts secrets before it cuts. */
const MESSAGES = 40;
const CHARS = 12_000;

/** Runs a hook and returns its text for the session. It never fails: a hook must not disturb the agent. */
function hook(event, input, cwd) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND;
    const child = spawn(program, [...args, event], { cwd, stdio: ["pipe", "pipe", "ignore"], shell: process.platform === "win32", timeout: 60_000 });
    let output = "";
    child.stdout.on("data", (bytes) => (output += bytes));
    child.stdin.on("error", () => {});
    child.on("error", () => resolve(undefined));
    child.on("close", () => {
      try {
        resolve(JSON.parse(output).hookSpecificOutput?.additionalContext);
      } catch {
        resolve(undefined); // no output
      }
    });
    child.stdin.end(JSON.stringify(input));
  });
}

const textOf = (parts) => parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : [])).join("\\n").slice(0, CHARS);

/** Returns a message as one line of a transcript. */
function lineOf({ info, parts }) {
  const toolCalls = parts.flatMap(({ type, tool, state }) =>
    type === "tool" && (tool === "write" || tool === "edit") && state?.input?.filePath
      ? [{ name: "write_file", args: { file_path: state.input.filePath } }]
      : [],
  );
  return { type: info.role, content: textOf(parts), toolCalls, isCompactSummary: info.summary === true };
}

export const Cairn = async ({ client, directory }) => {
  const offers = new Map();
  const children = new Set(); // sessions of subagents

  const offer = (id, source) => offers.set(id, hook("session-start", { session_id: id, cwd: directory, source }, directory));

  async function save(event, id, more = {}) {
    if (children.has(id)) return;
    try {
      const { data = [] } = await client.session.messages({ path: { id } });
      const summary = event === "post-compact" ? data.findLast(({ info }) => info.summary === true && info.role === "assistant") : undefined;
      const compact = summary ? { compact_summary: textOf(summary.parts) } : {};
      const transcript = data.slice(-MESSAGES).map(lineOf).filter(({ isCompactSummary }) => !isCompactSummary);
      await hook(event, { session_id: id, cwd: directory, transcript, ...compact, ...more }, directory);
    } catch {
      // The messages cannot be read.
    }
  }

  return {
    event: async ({ event: { type, properties } }) => {
      if (type === "session.created") {
        if (properties.info.parentID) children.add(properties.info.id);
        else offer(properties.info.id, "startup");
      }
      if (type === "session.idle") await save("session-end", properties.sessionID, { reason: "idle" });
      if (type === "session.compacted") {
        await save("post-compact", properties.sessionID);
        offer(properties.sessionID, "compact");
      }
    },
    "experimental.session.compacting": ({ sessionID }) => save("pre-compact", sessionID),
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID || children.has(sessionID)) return;
      if (!offers.has(sessionID)) offer(sessionID, "resume");
      const text = await offers.get(sessionID);
      if (text) system.push(text);
    },
  };
};
`;
