import { scopeOf } from "./request.ts";

/** Remembers failures for a while, so that not every search waits for a server that is down. */
export interface QdrantHealth {
  /** Returns why Qdrant is not queried for this tenant now. */
  reason(tenant: string): string | undefined;
  /** Returns the milliseconds for which no request should be sent. */
  serverPauseMs(): number;
  /** Pauses what the failure concerns: all searches if the server is down, else those of this tenant. */
  failed(tenant: string, error: unknown): void;
  succeeded(tenant: string): void;
}

interface Pause {
  readonly until: number;
  readonly reason: string;
}

export function qdrantHealth(pauseMs: number, now: () => number = Date.now): QdrantHealth {
  let server: Pause | undefined;
  const tenants = new Map<string, Pause>();
  const current = (pause: Pause | undefined) => (pause && now() < pause.until ? pause.reason : undefined);
  return {
    reason: (tenant) => current(server) ?? current(tenants.get(tenant)),
    serverPauseMs: () => Math.max(0, (server?.until ?? 0) - now()),
    failed(tenant, error) {
      const pause = { until: now() + pauseMs, reason: reasonOf(error) };
      const scope = scopeOf(error);
      if (scope === "server") server = pause;
      if (scope === "tenant") tenants.set(tenant, pause);
    },
    succeeded(tenant) {
      server = undefined;
      tenants.delete(tenant);
    },
  };
}

/** Returns the message of a failure, without its last full stop. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message.replace(/\.$/, "") : String(error));
