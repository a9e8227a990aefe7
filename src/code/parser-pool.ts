import { setMaxListeners } from "node:events";
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { CairnError } from "../model/errors.ts";
import type { UnembeddedChunks } from "../model/unembedded-chunks.ts";
import type { ThreadModel } from "../ports/embedder.ts";
import { startThread } from "../scheduling/run-in-thread.ts";
import { type ChunkFileInput, chunkFile } from "./chunking/chunk-file.ts";
import { isGrammarName } from "./chunking/grammars/index.ts";
import { languageOf } from "./chunking/language.ts";
import { type DerivedFile, deriveFile, deriveWithoutVectors, type ThreadVectors } from "./derive-file.ts";
import { type FileTask, PACKING, PARSING, PLACE, STEP, STEPS, type WorkerMessage, type WorkerTask } from "./parser-messages.ts";

export interface ParserPool {
  /**
   * Cuts a file by its syntax and computes its stored form, off this thread. A parser that hangs, crashes or runs out of memory costs
   * the file its syntax: it is then cut by lines, and `notice` has the reason. With a model, the thread embeds the chunks too, unless it
   * cannot open the model. Rejects only when cancelled, closed or flooded.
   */
  derive(input: ChunkFileInput, options?: DeriveOptions): Promise<DerivedFile>;
  /** Embeds stored chunks in a thread. Returns undefined if the thread cannot open the model, or crashes. */
  embed(
    stored: UnembeddedChunks,
    model: ThreadModel,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ThreadVectors | undefined>;
  /** Ends the threads. What still waits is rejected. */
  close(): Promise<void>;
}

export interface DeriveOptions {
  readonly signal?: AbortSignal | undefined;
  /** The model with which the thread embeds the chunks, or `later`: the caller adds vectors to the stored chunks. */
  readonly model?: ThreadModel | "later" | undefined;
}

export interface ParserPoolOptions {
  /** Threads at most; they start when needed. Default: as many as processors, between 1 and 4. */
  readonly threads?: number;
  /** How long one file may take, once its grammar is loaded. */
  readonly timeoutMs?: number;
  /** Threads without work for this long are ended, so that an idle server holds no parser. */
  readonly idleMs?: number;
  /** For the parser of each thread, and again for its JavaScript heap. */
  readonly memoryBytes?: number;
  /** The program of the threads; tests put in one that misbehaves. */
  readonly workerUrl?: URL;
}

/** Above this a file is cut by lines without a try: its tree would be some fifty times as big. */
const MAX_SYNTAX_CHARS = 2 * 1024 * 1024;
/** Without a grammar a short file is cut here at once, unless a thread runs; a long one would hold up everything else on this thread. */
const MAX_HERE_CHARS = 64 * 1024;
/** Callers send files in small batches; more than this many waiting means that something has run away. */
const MAX_WAITING = 10_000;
/** A file's chunks are soon sent away. */
const YOUNG_MB = 8;
/** Milliseconds that a step other than parsing may take. */
const LOAD_TIMEOUT_MS = 120_000;
/** Milliseconds between two looks at the steps of the threads. */
const WATCH_MS = 200;
/** Limits of the tasks in one message: they wait for each other, and a lost thread repeats them. */
const TASKS_AT_ONCE = 8;
const CHARS_AT_ONCE = 64 * 1024;

interface Task {
  readonly work: WorkerTask;
  /** Takes the result of the thread: of the kind that the work asks for. */
  resolve(result: never): void;
  /** Ends the task without the thread, which was lost. */
  lose(reason: string): void;
  reject(error: CairnError): void;
}

interface Thread {
  readonly worker: Worker;
  readonly progress: Int32Array;
  ready: boolean;
  /** The tasks that it works on, in order. */
  tasks: Task[];
  /** The step that was seen last, and when it was seen first. */
  steps: number;
  since: number;
  idle: NodeJS.Timeout | undefined;
}

/** A few threads that parse. A pool of our own, because replacing a thread that misbehaves is all it is about. */
export function parserPool(options: ParserPoolOptions = {}): ParserPool {
  const {
    threads: maxThreads = Math.min(4, availableParallelism()),
    timeoutMs = 5_000,
    idleMs = 10_000,
    memoryBytes = 256 * 1024 * 1024,
    workerUrl = "code/parser-worker.js",
  } = options;
  const threads = new Set<Thread>();
  const waiting: Task[] = [];
  let closed = false;

  let watch: NodeJS.Timeout | undefined;

  function start(): void {
    const progress = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
    const worker = startThread(workerUrl, {
      workerData: { memoryBytes, progress },
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(memoryBytes / 1024 / 1024), maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const thread: Thread = { worker, progress, ready: false, tasks: [], steps: 0, since: performance.now(), idle: undefined };
    threads.add(thread);
    watchWhileBusy();
    worker.on("message", (message: WorkerMessage) => receive(thread, message));
    worker.on("error", (error) => lose(thread, `the parser crashed: ${error.message}`));
    worker.on("messageerror", (error) => lose(thread, `the parser's answer could not be read: ${error.message}`));
    worker.on("exit", () => lose(thread, "the parser ended without an answer"));
  }

  const isBusy = ({ ready, tasks }: Thread) => !ready || tasks.length > 0;

  /** Watches the threads as long as one of them has work. */
  function watchWhileBusy(): void {
    if ([...threads].some(isBusy)) {
      watch ??= setInterval(watchThreads, WATCH_MS).unref();
      return;
    }
    clearInterval(watch);
    watch = undefined;
  }

  /** Loses threads whose step takes too long. */
  function watchThreads(): void {
    const now = performance.now();
    for (const thread of threads) {
      if (!isBusy(thread)) continue;
      const steps = Atomics.load(thread.progress, STEPS);
      if (steps !== thread.steps) Object.assign(thread, { steps, since: now });
      const step = Atomics.load(thread.progress, STEP);
      if (now - thread.since <= (step === PARSING ? timeoutMs : LOAD_TIMEOUT_MS)) continue;
      lose(thread, thread.ready ? (SLOW[step]?.(timeoutMs) ?? "the grammar did not load") : "the parser did not start");
    }
  }

  function receive(thread: Thread, message: WorkerMessage): void {
    if (!threads.has(thread)) return;
    if (message.type === "failed") {
      lose(thread, `the parser failed: ${message.reason}`);
      return;
    }
    if (message.type === "done") for (const [place, task] of thread.tasks.entries()) task.resolve(message.results[place] as never);
    thread.tasks = [];
    thread.ready = true;
    next(thread);
  }

  function next(thread: Thread): void {
    clearTimeout(thread.idle);
    thread.tasks = takeTasks();
    watchWhileBusy();
    if (thread.tasks.length === 0) {
      // An idle thread must not keep the process alive, nor its memory for ever.
      thread.worker.unref();
      thread.idle = setTimeout(() => end(thread), idleMs).unref();
      return;
    }
    thread.worker.ref();
    thread.since = performance.now();
    thread.worker.postMessage(thread.tasks.map(({ work }) => work));
  }

  /** Takes the tasks of one message: few while few wait, so that all threads have work. */
  function takeTasks(): Task[] {
    const share = Math.min(TASKS_AT_ONCE, Math.ceil(waiting.length / maxThreads));
    let count = 0;
    for (let chars = 0; count < share; count++) {
      const { work } = waiting[count]!;
      chars += "input" in work ? work.input.content.length : CHARS_AT_ONCE;
      if (count > 0 && chars > CHARS_AT_ONCE) break;
    }
    return waiting.splice(0, count);
  }

  function end(thread: Thread): Promise<unknown> {
    threads.delete(thread);
    clearTimeout(thread.idle);
    watchWhileBusy();
    return thread.worker.terminate();
  }

  /** The thread is done for: its file is cut by lines here, and a new thread takes the rest. */
  function lose(thread: Thread, reason: string): void {
    if (!threads.has(thread)) return;
    const { tasks, ready, progress } = thread;
    void end(thread);
    const [lost] = tasks.splice(Atomics.load(progress, PLACE), 1);
    waiting.unshift(...tasks);
    // A thread that never started cannot be helped by another; the file that waited longest pays, so that this ends.
    (lost ?? (ready ? undefined : waiting.shift()))?.lose(reason);
    if (waiting.length > 0 && threads.size < maxThreads) start();
  }

  /** Runs work in the next free thread. `onLost` returns the result without it. */
  function run<Result>(work: WorkerTask, signal: AbortSignal | undefined, onLost: (reason: string) => Result): Promise<Result> {
    if (signal?.aborted) return Promise.reject(cancelledError());
    if (closed) return Promise.reject(new CairnError("unavailable", "The parser pool is closed."));
    if (waiting.length >= MAX_WAITING)
      return Promise.reject(
        new CairnError("unavailable", `${MAX_WAITING} files wait for the parser already. Send fewer at a time.`, { retryAfterMs: 1_000 }),
      );
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const place = waiting.indexOf(task);
        if (place >= 0) waiting.splice(place, 1);
        reject(cancelledError());
      };
      const settled = (): void => signal?.removeEventListener("abort", onAbort);
      const task: Task = {
        work,
        resolve(result) {
          settled();
          resolve(result);
        },
        lose(reason) {
          settled();
          resolve(onLost(reason));
        },
        reject(error) {
          settled();
          reject(error);
        },
      };
      if (signal) {
        setMaxListeners(0, signal); // one listener per file of a batch, which has more files than Node expects listeners
        signal.addEventListener("abort", onAbort, { once: true });
      }
      waiting.push(task);
      const idle = [...threads].find((thread) => !isBusy(thread));
      if (idle) next(idle);
      else if (threads.size < maxThreads) start();
    });
  }

  return {
    async derive(input, { signal, model } = {}) {
      const language = input.language ?? languageOf(input.path, input.content);
      const whole = { ...input, language };
      if (signal?.aborted) throw cancelledError();
      const hasGrammar = isGrammarName(language);
      if (!hasGrammar && threads.size === 0 && input.content.length <= MAX_HERE_CHARS) return deriveHere(whole, model);
      const tooLong = hasGrammar && input.content.length > MAX_SYNTAX_CHARS;
      const file = await run<DerivedFile>({ input: whole, syntax: !tooLong, model }, signal, (reason) => byLines(whole, model, reason));
      return tooLong ? { ...file, notice: lineSplitNotice(`the file is longer than ${MAX_SYNTAX_CHARS} characters`) } : file;
    },

    embed: (stored, model, { signal } = {}) => run<ThreadVectors | undefined>({ stored, model }, signal, () => undefined),

    async close() {
      closed = true;
      const running = [...threads];
      const tasks = [...waiting.splice(0), ...running.flatMap((thread) => thread.tasks)];
      await Promise.all(running.map(end));
      for (const task of tasks) task.reject(new CairnError("unavailable", "The parser pool was closed before this file was parsed."));
    },
  };
}

/** Why a thread is lost whose step takes too long. */
const SLOW: Readonly<Record<number, (timeoutMs: number) => string>> = {
  [PARSING]: (timeoutMs) => `the parser took longer than ${timeoutMs} ms`,
  [PACKING]: () => "the file could not be packed in time",
};

/** Cuts a file by lines in this thread. A language without a grammar loses nothing by that. */
function byLines(input: FileTask["input"], model: FileTask["model"], reason: string): DerivedFile {
  const file = deriveHere(input, model);
  return isGrammarName(input.language) ? { ...file, notice: lineSplitNotice(reason) } : file;
}

function deriveHere(input: FileTask["input"], model: FileTask["model"]): DerivedFile {
  const file = chunkFile(input);
  return model === "later" ? deriveWithoutVectors(input.path, file) : deriveFile(input.path, file);
}

function lineSplitNotice(reason: string): string {
  return `Cut by lines, because ${reason}.`;
}

function cancelledError(): CairnError {
  return new CairnError("cancelled", "The call was cancelled by its caller.");
}
