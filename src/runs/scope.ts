/**
 * Ends everything that runs under it at once. Like an AbortController, but waiting on it a hundred thousand times leaves nothing
 * behind, and the signal itself is only made when a step asks for it.
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

  /** Calls back once, at once if it is over already. The result takes the call back. */
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

  /** What the work comes to, unless the scope ends first. */
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

  /** Lets go of the parent. */
  close(): void {
    this.#leave?.();
  }
}
