import { type ChildProcess, fork } from "node:child_process";
import { CairnError } from "../../model/errors.ts";

export interface ModelProcessOptions {
  /** The JavaScript file that runs in the process, and its arguments. */
  readonly entry: string;
  readonly args?: readonly string[];
  /** Milliseconds after which an idle process ends and frees its memory; default five minutes. */
  readonly idleMs?: number | undefined;
}

/** A process that serves one request at a time. It starts on first use, ends when idle and restarts after a crash. */
export interface ModelProcess<Request, Reply> {
  /** Rejects with `unavailable` when the process dies before it replies. Call it only after the previous reply. */
  ask(request: Request): Promise<Reply>;
  /** The process id while one is running. */
  pid(): number | undefined;
  stop(): Promise<void>;
}

const IDLE_MS = 5 * 60_000;

export function modelProcess<Request extends object, Reply>(options: ModelProcessOptions): ModelProcess<Request, Reply> {
  const { idleMs = IDLE_MS } = options;
  let child: ChildProcess | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let pending: { resolve: (reply: Reply) => void; reject: (error: CairnError) => void } | undefined;

  function start(): ChildProcess {
    const started = fork(options.entry, options.args ?? [], {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // Flags of the parent, such as a debugger port or a loader, do not apply to this process.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    const ended = (how: string, cause?: Error): void => {
      if (child !== started) return;
      child = undefined;
      settle()?.reject(new CairnError("unavailable", `The local embedding process ${how}. It restarts on next use.`, { cause }));
    };
    started.on("message", (reply) => settle()?.resolve(reply as Reply));
    started.on("error", (error) => ended("could not be reached", error));
    started.on("exit", (code, signal) => ended(`ended unexpectedly (${signal ?? `exit code ${code}`})`));
    return started;
  }

  function settle(): typeof pending {
    const settled = pending;
    pending = undefined;
    // The process keeps this one alive only while a reply is pending.
    child?.unref();
    child?.channel?.unref?.(); // Bun has no references of channels
    clearTimeout(idleTimer);
    idleTimer = setTimeout(() => void stop(), idleMs);
    idleTimer.unref();
    return settled;
  }

  async function stop(): Promise<void> {
    clearTimeout(idleTimer);
    const stopping = child;
    child = undefined;
    pending?.reject(new CairnError("cancelled", "The local embedder was closed while it was working."));
    pending = undefined;
    if (stopping === undefined || stopping.exitCode !== null || stopping.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => stopping.once("exit", () => resolve()));
    stopping.ref();
    stopping.kill("SIGKILL"); // it holds no state
    await gone;
  }

  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        clearTimeout(idleTimer);
        child ??= start();
        pending = { resolve, reject };
        child.ref();
        child.channel?.ref?.();
        child.send(request);
      }),
    pid: () => child?.pid,
    stop,
  };
}
