import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Records that one list on the command line returns at most. */
const LIST_MAX = 10_000;

/**
 * Calls a list operation as often as `--limit` needs: an operation returns at most 100 records. Returns one output with the items of all
 * pages. A limit of one page is a single call.
 */
export async function listPages(operation: Operation, input: Fields, call: (input: Fields) => Promise<Fields>): Promise<Fields> {
  const view = operation.cli?.view;
  const { limit } = input;
  const position = (["cursor", "before"] as const).find(
    (field) => field in operation.input.shape && `next_${field}` in operation.output.shape,
  );
  if (!view || !("table" in view) || position === undefined || typeof limit !== "number") return call(input);
  if (!Number.isInteger(limit) || limit <= LIMITS.listMax || limit > LIST_MAX) return call(input);
  const items: unknown[] = [];
  let answer: Fields = {};
  let next = input[position];
  do {
    const size = Math.min(LIMITS.listMax, limit - items.length);
    // An offset counts once: the following pages continue after the previous one.
    const { offset: _, ...following } = input;
    answer = await call({ ...(items.length === 0 ? input : following), limit: size, ...(next !== undefined && { [position]: next }) });
    items.push(...((answer[view.table] ?? []) as unknown[]));
    next = answer[`next_${position}`];
  } while (next !== undefined && items.length < limit);
  return { ...answer, [view.table]: items };
}
