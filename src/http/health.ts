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
  /** How much of the shared knowledge can be found by meaning; what cannot be is found by words, so this alone does not make it unready. */
  readonly knowledge?: KnowledgeReadiness | undefined;
}

type KnowledgeReadiness = Awaited<ReturnType<Cairn["knowledge"]["readiness"]>>;
type Checked = Pick<Cairn, "check" | "knowledge">;

const CHECK_TIMEOUT_MS = 3_000;
/** Many probes at once cost one check of the storage. */
const REMEMBER_MS = 500;

/** Says whether the process lives and whether it can work: the storage answers, and it is not shutting down. */
export function healthCheck(cairn: Checked, isDraining: () => boolean): () => Promise<Health> {
  const startedAt = performance.now();
  let last: { readonly atMs: number; readonly state: ReturnType<typeof storageState> } | undefined;
  return async () => {
    if (!last || performance.now() - last.atMs > REMEMBER_MS) last = { atMs: performance.now(), state: storageState(cairn) };
    const { problem, knowledge, knowledgeProblem } = await last.state;
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
        ...(knowledgeProblem !== undefined && { knowledge: { ok: false, reason: knowledgeProblem } }),
      },
      ...(knowledge && { knowledge }),
    };
  };
}

async function storageState(
  cairn: Checked,
): Promise<{ readonly problem?: string; readonly knowledgeProblem?: string; readonly knowledge?: KnowledgeReadiness }> {
  let timer: NodeJS.Timeout | undefined;
  const slow = new Promise<{ problem: string }>((resolve) => {
    timer = setTimeout(() => resolve({ problem: `The storage did not answer within ${CHECK_TIMEOUT_MS} ms.` }), CHECK_TIMEOUT_MS);
  });
  const reasonOf = (error: unknown) =>
    error instanceof CairnError ? error.message : "The storage cannot be used; the log has the details.";
  const checked = cairn.check().then(
    // Shared knowledge that cannot be read does not keep projects from being used.
    () =>
      cairn.knowledge.readiness().then(
        (knowledge) => ({ knowledge }),
        (error: unknown) => ({ knowledgeProblem: reasonOf(error) }),
      ),
    (error: unknown) => ({ problem: reasonOf(error) }),
  );
  try {
    return await Promise.race([checked, slow]);
  } finally {
    clearTimeout(timer);
  }
}
