import { CairnError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Cairn } from "../operations/cairn.ts";

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
  /** How much of the shared knowledge semantic search covers. Keyword search covers the rest, so a low figure does not make the server unready. */
  readonly knowledge?: KnowledgeReadiness | undefined;
}

type KnowledgeReadiness = Awaited<ReturnType<Cairn["knowledge"]["readiness"]>>;
type Checked = Pick<Cairn, "check"> & { readonly knowledge: Pick<Cairn["knowledge"], "readiness"> };

/** How long a probe waits for the storage before it answers that the storage is slow. */
const CHECK_TIMEOUT_MS = 3_000;
/** The check writes to the disk, so its result is used again: for this long when it succeeded, */
const REMEMBER_READY_MS = 5_000;
/** and for this long when it failed, so that a recovery shows soon. */
const REMEMBER_FAILED_MS = 1_000;

/** Reports whether the process lives and whether it can work: the storage takes writes, and the server is not shutting down. */
export function healthCheck(
  cairn: Checked,
  isDraining: () => boolean,
  nowMs: () => number = () => performance.now(),
): () => Promise<Health> {
  const startedAt = nowMs();
  const check = remember(() => storageState(cairn), nowMs);
  return async () => {
    const { problem, knowledge, knowledgeProblem } = await check();
    const draining = isDraining();
    const ready = problem === undefined && !draining;
    return {
      status: ready ? "ok" : "unavailable",
      live: true,
      ready,
      version: VERSION,
      uptime_seconds: Math.round((nowMs() - startedAt) / 1000),
      checks: {
        storage: problem === undefined ? { ok: true } : { ok: false, reason: problem },
        accepting: draining ? { ok: false, reason: "The server is shutting down." } : { ok: true },
        ...(knowledgeProblem !== undefined && { knowledge: { ok: false, reason: knowledgeProblem } }),
      },
      ...(knowledge && { knowledge }),
    };
  };
}

interface StorageState {
  readonly problem?: string;
  readonly knowledgeProblem?: string;
  readonly knowledge?: KnowledgeReadiness;
}

/** Runs one check at a time and uses its result again for a while: however many probes come, the storage does little work. */
function remember(check: () => Promise<StorageState>, nowMs: () => number): () => Promise<StorageState> {
  let last: { readonly state: StorageState; readonly untilMs: number } | undefined;
  let running: Promise<StorageState> | undefined;
  return () => {
    if (last && nowMs() < last.untilMs) return Promise.resolve(last.state);
    running ??= check().then((state) => {
      last = { state, untilMs: nowMs() + (state.problem === undefined ? REMEMBER_READY_MS : REMEMBER_FAILED_MS) };
      running = undefined;
      return state;
    });
    return orSlow(running); // a check that hangs is not started a second time
  };
}

async function orSlow(state: Promise<StorageState>): Promise<StorageState> {
  let timer: NodeJS.Timeout | undefined;
  const slow = new Promise<StorageState>((resolve) => {
    timer = setTimeout(() => resolve({ problem: `The storage did not answer within ${CHECK_TIMEOUT_MS} ms.` }), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([state, slow]);
  } finally {
    clearTimeout(timer);
  }
}

async function storageState(cairn: Checked): Promise<StorageState> {
  const reasonOf = (error: unknown) =>
    error instanceof CairnError ? error.message : "The storage cannot be used; the log has the details.";
  try {
    await cairn.check();
  } catch (error) {
    return { problem: reasonOf(error) };
  }
  try {
    return { knowledge: await cairn.knowledge.readiness() };
  } catch (error) {
    return { knowledgeProblem: reasonOf(error) }; // projects can be used without the shared knowledge
  }
}
