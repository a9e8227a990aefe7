import { CairnError } from "../../../model/errors.ts";
import { POOL_TIMEOUT } from "./errors.ts";

/** Turns at the connections of a pool. */
export interface ConnectionQueue {
  /**
   * Waits for a turn and returns the function that ends it. Of several waiters, the one with the smallest `since` is next: work of a call
   * that began earlier goes before work of a later one. Raises an error with the message `POOL_TIMEOUT` after `limitMs`.
   */
  enter(wait: { readonly since: number; readonly limitMs: number }): Promise<() => void>;
}

/** Maximum number of waiters. Further ones fail at once, because the server cannot keep up. */
const WAITING_MAX = 1_000;

interface Waiter {
  readonly since: number;
  readonly begin: () => void;
}

/**
 * Returns the queue for a pool with this many connections. The queue of `pg` is first in, first out, so each statement of a call
 * would wait behind the calls that began later. It also limits the wait by the time that a connection may take to be opened.
 */
export function connectionQueue({ connections, where }: { readonly connections: number; readonly where: string }): ConnectionQueue {
  const waiting: Waiter[] = [];
  let free = connections;

  function turn(): () => void {
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      const next = waiting.shift();
      if (next) next.begin();
      else free++;
    };
  }

  return {
    async enter({ since, limitMs }) {
      if (free > 0) {
        free--;
        return turn();
      }
      if (waiting.length >= WAITING_MAX)
        throw new CairnError("unavailable", `${waiting.length} calls already wait for a connection to ${where}. Try again later.`, {
          retryAfterMs: 1_000,
        });
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          since,
          begin() {
            clearTimeout(timer);
            resolve(turn());
          },
        };
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(waiter), 1);
          reject(new Error(POOL_TIMEOUT));
        }, limitMs);
        const after = waiting.findLastIndex((other) => other.since <= since);
        waiting.splice(after + 1, 0, waiter);
      });
    },
  };
}
