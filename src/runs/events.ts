import type { RunError } from "./run-error.ts";

/** The events of a run. */
export type RunEvent<S = unknown> =
  | { readonly type: "run_started"; readonly runId: string; readonly resumed: boolean }
  | { readonly type: "step_started"; readonly runId: string; readonly node: string; readonly branch: string; readonly attempt: number }
  | {
      readonly type: "step_finished";
      readonly runId: string;
      readonly node: string;
      readonly branch: string;
      readonly attempt: number;
      readonly next: string;
      readonly state: S;
    }
  | {
      readonly type: "step_failed";
      readonly runId: string;
      readonly node: string;
      readonly branch: string;
      readonly attempt: number;
      readonly error: unknown;
      readonly retryInMs: number | undefined;
    }
  | { readonly type: "progress"; readonly runId: string; readonly node: string; readonly branch: string; readonly data: unknown }
  | { readonly type: "checkpoint_saved"; readonly runId: string; readonly node: string; readonly branch: string; readonly sequence: number }
  | { readonly type: "checkpoint_failed"; readonly runId: string; readonly node: string; readonly branch: string; readonly error: unknown }
  | { readonly type: "run_paused"; readonly runId: string; readonly interrupts: readonly Interrupt[] }
  | { readonly type: "run_completed"; readonly runId: string; readonly state: S }
  | { readonly type: "run_failed"; readonly runId: string; readonly error: RunError<S> };

/** A question of a step to a person. */
export interface Interrupt {
  readonly node: string;
  readonly branch: string;
  readonly question: unknown;
}

/** The number of buffered events at which the run waits for a slow reader. */
const WAITING_MAX = 1_000;

/** Passes the events of a run to one reader. A slow reader slows the run down, so that the buffer is bounded. */
export class EventQueue<E> {
  readonly #waiting: E[] = [];
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;
  #closed = false;

  push(event: E): void {
    this.#waiting.push(event);
    this.#wakeReader?.();
  }

  /** Resolves when the buffer has space. */
  room(): Promise<void> | undefined {
    if (this.#waiting.length < WAITING_MAX || this.#closed) return undefined;
    return new Promise((resolve) => {
      this.#wakeWriter = resolve;
    });
  }

  close(): void {
    this.#closed = true;
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  async *read(): AsyncGenerator<E, void, void> {
    for (;;) {
      const event = this.#waiting.shift();
      if (event !== undefined) {
        yield event;
        if (this.#waiting.length < WAITING_MAX / 2) this.#wakeWriter?.();
      } else if (this.#closed) return;
      else
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
    }
  }
}
