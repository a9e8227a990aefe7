import { isDeepStrictEqual } from "node:util";

/** One difference between two states. `path` has the keys and indexes that lead to it. */
export interface StateChange {
  readonly path: readonly (string | number)[];
  readonly kind: "added" | "removed" | "changed";
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Returns up to `limit` differences between two plain values, and whether there are more. Lists are compared without their equal beginning and end. */
export function compareStates(
  before: unknown,
  after: unknown,
  limit: number,
): { readonly changes: readonly StateChange[]; readonly more: boolean } {
  const changes: StateChange[] = [];
  let more = false;
  const add = (change: StateChange) => {
    if (changes.length < limit) changes.push(change);
    else more = true;
  };

  function compare(path: readonly (string | number)[], a: unknown, b: unknown): void {
    if (more || isDeepStrictEqual(a, b)) return;
    if (Array.isArray(a) && Array.isArray(b)) compareLists(path, a, b);
    else if (isObject(a) && isObject(b)) compareObjects(path, a, b);
    else add({ path, kind: "changed", before: a, after: b });
  }

  function compareObjects(path: readonly (string | number)[], a: PlainObject, b: PlainObject): void {
    for (const key of Object.keys(a)) {
      if (!Object.hasOwn(b, key)) add({ path: [...path, key], kind: "removed", before: a[key] });
      else compare([...path, key], a[key], b[key]);
    }
    for (const key of Object.keys(b)) if (!Object.hasOwn(a, key)) add({ path: [...path, key], kind: "added", after: b[key] });
  }

  function compareLists(path: readonly (string | number)[], a: readonly unknown[], b: readonly unknown[]): void {
    const shorter = Math.min(a.length, b.length);
    let start = 0;
    while (start < shorter && isDeepStrictEqual(a[start], b[start])) start++;
    let end = 0;
    while (end < shorter - start && isDeepStrictEqual(a[a.length - 1 - end], b[b.length - 1 - end])) end++;
    const [lastA, lastB] = [a.length - end, b.length - end];
    for (let i = start; i < Math.max(lastA, lastB) && !more; i++) {
      if (i >= lastB) add({ path: [...path, i], kind: "removed", before: a[i] });
      else if (i >= lastA) add({ path: [...path, i], kind: "added", after: b[i] });
      else compare([...path, i], a[i], b[i]);
    }
  }

  compare([], before, after);
  return { changes, more };
}

type PlainObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is PlainObject {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
