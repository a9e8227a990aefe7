import { EXIT_CODE } from "./exit-code.ts";

/** Milliseconds that a process which was asked to stop has to end its calls and close its databases. */
const STOP_GRACE_MS = 15_000;

/**
 * Ends the process after the grace period, whatever it still waits for: a lock, a provider or a server that does not answer. What was
 * acknowledged is durable by then, and what was not is repeated by its caller. A process that ends sooner is not kept alive.
 */
export function forceExitAfterGrace(): void {
  setTimeout(() => {
    process.stderr.write(`cairn: still waiting ${STOP_GRACE_MS / 1_000} s after it was asked to stop, so it ends now.\n`);
    process.exit(EXIT_CODE.cancelled);
  }, STOP_GRACE_MS).unref();
}
