export type Change = "same" | "added" | "removed" | "changed";

export interface Child {
  readonly name: string;
  readonly value: unknown;
  readonly before: unknown;
}

/** Returns how a value differs from the one before; `undefined` stands for an absent value. */
export function changeOf(value: unknown, before: unknown): Change {
  if (value === before) return "same";
  if (before === undefined) return "added";
  if (value === undefined) return "removed";
  return JSON.stringify(value) === JSON.stringify(before) ? "same" : "changed";
}

/** Returns the fields or items of two values, in one list; `undefined` if the value is a leaf. */
export function childrenOf(value: unknown, before: unknown): readonly Child[] | undefined {
  const current = isBranch(value) ? value : value === undefined && isBranch(before) ? {} : undefined;
  if (!current) return undefined;
  const earlier: Record<string, unknown> = isBranch(before) ? before : {};
  const names = [...Object.keys(current), ...Object.keys(earlier).filter((name) => !Object.hasOwn(current, name))];
  return names.map((name) => ({ name, value: own(current, name), before: own(earlier, name) }));
}

function own(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function isBranch(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
