import type { Cairn } from "../cairn.ts";
import { CairnError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";

export interface Health {
  readonly status: "ok" | "unavailable";
  /** The process answers. */
  readonly live: true;
  /** It can do its work. */
  readonly ready: boolean;
  readonly version: string;
  readonly uptime_seconds: number;
  /** Why it is not ready, for callers that may know. */
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly reason?: string }>>;
}

const CHECK_TIMEOUT_MS = 3_000;
/** Many probes at once cost one check of the storage. */
const REMEMBER_MS = 500;

/** Says whether the process lives and whether it can work: the storage answers, and it is not shutting down. */
export function healthCheck(cairn: Pick<Cairn, "check">, isDraining: () => boolean): () => Promise<Health> {
  const startedAt = performance.now();
  let last: { readonly atMs: number; readonly problem: Promise<string | undefined> } | undefined;
  return async () => {
    if (!last || performance.now() - last.atMs > REMEMBER_MS) last = { atMs: performance.now(), problem: storageProblem(cairn) };
    const problem = await last.problem;
    const draining = isDraining();
    const ready = problem === undefined && !draining;
    return {
      status: ready ? "ok" : "unavailable",
      live: true,
      ready,
      version: VERSION,
      uptime_seconds: Math.round((performance.now() - startedAt) / 1000),
      checks: {
        storage: problem === undefined ? { ok: true } : { ok: false, reason: problem },
        accepting: draining ? { ok: false, reason: "The server is shutting down." } : { ok: true },
      },
    };
  };
}

async function storageProblem(cairn: Pick<Cairn, "check">): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const slow = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`The storage did not answer within ${CHECK_TIMEOUT_MS} ms.`), CHECK_TIMEOUT_MS);
  });
  const checked = cairn.check().then(
    () => undefined,
    (error: unknown) => (error instanceof CairnError ? error.message : "The storage cannot be used; the log has the details."),
  );
  try {
    return await Promise.race([checked, slow]);
  } finally {
    clearTimeout(timer);
  }
}
