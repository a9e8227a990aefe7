import { CairnError } from "../model/errors.ts";
import { retryDelayMs } from "../scheduling/retry.ts";
import type { FailureKind, RetryRule, StepContext } from "./definition.ts";
import type { Interrupt } from "./events.ts";
import type { Scope } from "./scope.ts";

/** Thrown by `interrupt` through the step and its fork. Not an error. */
export class Paused {
  readonly interrupts: readonly Interrupt[];
  constructor(interrupts: readonly Interrupt[]) {
    this.interrupts = interrupts;
  }
}

/** The context of a step. Expensive fields are created on first use. */
export class Context implements StepContext {
  readonly runId: string;
  readonly node: string;
  readonly branch: string;
  readonly step: number;
  readonly attempt: number;
  /** Set when the step asked a question without an answer, even if the step caught the exception. */
  paused: Paused | undefined;
  readonly #scope: Scope;
  readonly #answers: readonly unknown[];
  readonly #progress: ((context: Context, data: unknown) => void) | undefined;
  #asked = 0;

  constructor(
    runId: string,
    node: string,
    branch: string,
    step: number,
    attempt: number,
    scope: Scope,
    answers: readonly unknown[],
    progress: ((context: Context, data: unknown) => void) | undefined,
  ) {
    this.runId = runId;
    this.node = node;
    this.branch = branch;
    this.step = step;
    this.attempt = attempt;
    this.#scope = scope;
    this.#answers = answers;
    this.#progress = progress;
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  get idempotencyKey(): string {
    return `${this.runId}/${this.branch && `${this.branch}/`}${this.node}#${this.step}/${this.attempt}`;
  }

  // Fields instead of methods, so that steps can destructure them.
  readonly interrupt = <Answer>(question: unknown = null): Answer => {
    if (this.#asked < this.#answers.length) return this.#answers[this.#asked++] as Answer;
    this.paused ??= new Paused([{ node: this.node, branch: this.branch, question }]);
    throw this.paused;
  };

  readonly progress = (data: unknown): void => this.#progress?.(this, data);
}

/** Classifies a failure for retry rules. */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof CairnError) return error.code;
  if (error instanceof TypeError && /fetch|network/i.test(error.message)) return "error"; // how fetch reports a connection that failed
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof SyntaxError || error instanceof RangeError)
    return "bug";
  if (error instanceof Error && error.name === "TimeoutError") return "timeout";
  if (error instanceof Error && error.name === "AbortError") return "cancelled";
  return "error";
}

const NOT_WORTH_IT: readonly FailureKind[] = ["bug", "invalid_input", "cancelled", "forbidden", "unauthorized", "too_large"];

/** Returns the delay before the next attempt, or `undefined` for none. `tries` counts the attempts so far. */
export function retryWait(rules: readonly RetryRule[], error: unknown, tries: number): number | undefined {
  const kind = failureKind(error);
  const rule = rules.find(({ on }) =>
    on === undefined ? !NOT_WORTH_IT.includes(kind) : typeof on === "function" ? on(error) : on.includes(kind),
  );
  if (!rule || tries >= rule.attempts) return undefined;
  const { backoffMs = 100, factor = 2, maxBackoffMs = 30_000 } = rule;
  return retryDelayMs({ firstMs: backoffMs, maxMs: maxBackoffMs, factor }, tries, error);
}
