/** Milliseconds in which a process that was asked to stop may finish its calls and close its databases. */
const STOP_GRACE_MS = 15_000;
/** The exit code by which a shell reports a process that Ctrl-C ended. */
const INTERRUPTED_EXIT_CODE = 130;

/**
 * Ends the process after the grace period, even if a lock, a provider or a server does not answer. Acknowledged writes are durable by
 * then, and callers repeat the others. A process that ends sooner is not kept alive.
 */
export function forceExitAfterGrace(): void {
  setTimeout(() => {
    process.stderr.write(`cairn: stopped ${STOP_GRACE_MS / 1_000} s after the request to stop, with work still in progress.\n`);
    process.exit(INTERRUPTED_EXIT_CODE);
  }, STOP_GRACE_MS).unref();
}
