import { RunError } from "./run-error.ts";

/** Signals by which a worker gives a run back to the queue, for another worker to continue. */
export interface HandOver {
  /** Lets the current steps finish first. */
  readonly afterStep: AbortSignal;
  /** Aborts the current steps. They are repeated with the same idempotency key, as after a crash. */
  readonly now: AbortSignal;
}

/** Ends the execution of a run that goes back to the queue. Not a failure of the run. */
export class HandedOver extends RunError {
  constructor(runId: string) {
    super("cancelled", "The worker stopped; another one continues the run.", { runId });
  }
}
