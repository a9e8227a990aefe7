/**
 * Has the better model embed a project's code by itself, once its index has been quiet for a while: during an index, every new chunk
 * would go through both models. Only processes that stay that long come to it; one that ends before leaves it to the next.
 */
export interface Deepener {
  /** The project was indexed or searched. */
  consider(projectId: string): void;
  close(): void;
}

export interface DeepenerOptions {
  /** When the project's index last changed; `undefined` if there is none. */
  readonly lastIndexedAt: (projectId: string) => Promise<string | undefined>;
  /** Goes on in the background. */
  readonly deepen: (projectId: string) => Promise<unknown>;
  readonly quietMs?: number;
}

/** More projects than this wait for their next search. */
const WAITING_MAX = 1_000;

export function deepener({ lastIndexedAt, deepen, quietMs = 60_000 }: DeepenerOptions): Deepener {
  const waiting = new Map<string, NodeJS.Timeout>();
  const done = new Set<string>();

  function consider(projectId: string): void {
    if (done.has(projectId) || waiting.has(projectId) || waiting.size >= WAITING_MAX) return;
    const timer = setTimeout(() => void look(projectId), quietMs);
    timer.unref();
    waiting.set(projectId, timer);
  }

  async function look(projectId: string): Promise<void> {
    waiting.delete(projectId);
    try {
      const last = await lastIndexedAt(projectId);
      if (last === undefined) return;
      if (Date.now() - Date.parse(last) < quietMs) return consider(projectId);
      done.add(projectId);
      await deepen(projectId);
    } catch {
      done.delete(projectId); // the model or the database is away: with the next search
    }
  }

  return {
    consider,
    close() {
      for (const timer of waiting.values()) clearTimeout(timer);
      waiting.clear();
    },
  };
}
