import { type ChildProcess, fork } from "node:child_process";
import { CairnError } from "../../model/errors.ts";

export interface ModelProcessOptions {
  /** The JavaScript file that runs in the process, and its arguments. */
  readonly entry: string;
  readonly args?: readonly string[];
  /** How long the process may stay without work before it is ended and its memory given back. */
  readonly idleMs: number;
}

/** A process that answers one request at a time: started on first use, ended when idle, started again after a crash. */
export interface ModelProcess<Request, Reply> {
  /** Rejects with `unavailable` when the process dies before it answers. Call only when the last answer is in. */
  ask(request: Request): Promise<Reply>;
  /** The process id while one is running. */
  pid(): number | undefined;
  stop(): Promise<void>;
}

export function modelProcess<Request extends object, Reply>(options: ModelProcessOptions): ModelProcess<Request, Reply> {
  let child: ChildProcess | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let pending: { resolve: (reply: Reply) => void; reject: (error: CairnError) => void } | undefined;

  function start(): ChildProcess {
    const started = fork(options.entry, options.args ?? [], {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // Flags of the parent (a debugger port, a loader) are not meant for this process.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    const ended = (how: string, cause?: Error): void => {
      if (child !== started) return;
      child = undefined;
      settle()?.reject(new CairnError("unavailable", `The local embedding process ${how}. It is started again on next use.`, { cause }));
    };
    started.on("message", (reply) => settle()?.resolve(reply as Reply));
    started.on("error", (error) => ended("could not be reached", error));
    started.on("exit", (code, signal) => ended(`ended unexpectedly (${signal ?? `exit code ${code}`})`));
    return started;
  }

  function settle(): typeof pending {
    const settled = pending;
    pending = undefined;
    // Idle, the process must not keep this one alive; at work, it must, or the answer would never arrive.
    child?.unref();
    child?.channel?.unref();
    clearTimeout(idleTimer);
    idleTimer = setTimeout(() => void stop(), options.idleMs);
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
    stopping.kill("SIGKILL"); // It holds nothing worth saving.
    await gone;
  }

  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        clearTimeout(idleTimer);
        child ??= start();
        pending = { resolve, reject };
        child.ref();
        child.channel?.ref();
        child.send(request);
      }),
    pid: () => child?.pid,
    stop,
  };
}
