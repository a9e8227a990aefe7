/**
 * A tree of cancellations. Like an AbortController, but 100,000 waits on it leak no listeners, and the signal is created only when a
 * step uses it.
 */
export class Scope {
  reason: unknown;
  aborted = false;
  #controller: AbortController | undefined;
  readonly #waiting = new Set<(reason: unknown) => void>();
  readonly #leave: (() => void) | undefined;

  constructor(parent?: Scope) {
    if (parent) {
      const follow = (reason: unknown) => this.abort(reason);
      this.#leave = parent.onAbort(follow);
    }
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#controller?.abort(reason);
    for (const stop of [...this.#waiting]) stop(reason);
    this.#waiting.clear();
  }

  /** Calls `stop` once on abort, immediately if already aborted. Returns a function that unsubscribes. */
  onAbort(stop: (reason: unknown) => void): () => void {
    if (this.aborted) stop(this.reason);
    else this.#waiting.add(stop);
    return () => this.#waiting.delete(stop);
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** Settles like `work`, or rejects when the scope is aborted first. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const leave = this.onAbort(reject);
      work.then(
        (value) => {
          leave();
          resolve(value);
        },
        (error) => {
          leave();
          reject(error);
        },
      );
    });
  }

  sleep(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const rest = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    return this.race(rest).finally(() => clearTimeout(timer));
  }

  /** Unsubscribes from the parent scope. */
  close(): void {
    this.#leave?.();
  }
}
