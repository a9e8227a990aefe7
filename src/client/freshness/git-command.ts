import { execFile } from "node:child_process";
import { dirname } from "node:path";

/** Milliseconds and bytes of output that one call of git may take. */
const LIMIT_MS = 10_000;
const LIMIT_BYTES = 32 * 1024 * 1024;

/**
 * Settings that override those of the repository: nothing in it may start a program or reach a network. Only plumbing commands that read
 * objects are called. They run neither hooks nor filters, and external diff programs are switched off in their arguments.
 */
const SETTINGS = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "protocol.allow=never", "submodule.recurse=false"];

const ENVIRONMENT = {
  GIT_ALLOW_PROTOCOL: "none", // a partial clone would fetch missing objects with programs that its configuration names
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: "/dev/null", // changes the history without changing ids
  LC_ALL: "C",
};

/** Git took longer, or wrote more, than its limit. */
export class GitLimitError extends Error {}

/** Runs git in a working tree and returns its output, or `undefined` if git is missing or fails. Raises `GitLimitError` beyond a limit. */
export async function runGit(tree: string, args: readonly string[], input?: string): Promise<string | undefined> {
  while (running >= PROCESSES) await new Promise<void>((resolve) => waiting.push(resolve));
  running++;
  try {
    return await startGit(tree, args, input);
  } finally {
    running--;
    waiting.shift()?.();
  }
}

/** Processes of git at the same time: an answer with many records must not start a hundred. */
const PROCESSES = 4;
let running = 0;
const waiting: (() => void)[] = [];

function startGit(tree: string, args: readonly string[], input: string | undefined): Promise<string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  const env = { ...Object.fromEntries(own), ...ENVIRONMENT, GIT_CEILING_DIRECTORIES: dirname(tree) };
  const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
  return new Promise((resolve, reject) => {
    const child = execFile(
      "git",
      ["--no-optional-locks", "--no-pager", ...settings, ...args],
      { cwd: tree, env, timeout: LIMIT_MS, maxBuffer: LIMIT_BYTES, windowsHide: true, encoding: "utf8" },
      (error, stdout) => {
        const isTooMuch = (error as NodeJS.ErrnoException | null)?.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER";
        if (error?.killed || isTooMuch) reject(new GitLimitError(`git ${args[0]} exceeded its limit`));
        else resolve(error ? undefined : stdout);
      },
    );
    child.stdin?.on("error", () => {}); // git may end before it has read everything
    child.stdin?.end(input ?? "");
  });
}
