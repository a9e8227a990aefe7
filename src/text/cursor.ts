import { CairnError } from "../model/errors.ts";

/** A page of a list: the records that a store read, one more than the limit, and the records that the page shows. */
export interface ListPage<RecordType> {
  readonly read: readonly RecordType[];
  readonly shown: readonly RecordType[];
  readonly orderOf: (record: RecordType) => string;
}

/** Returns the cursor of the next page, or `undefined` on the last one. */
export function nextCursor<RecordType extends { readonly id: string }>(
  order: string,
  { read, shown, orderOf }: ListPage<RecordType>,
): string | undefined {
  const last = shown.at(-1);
  return last && read.length > shown.length ? encodeCursor(order, orderOf(last), last.id) : undefined;
}

/** Encodes the list's order and the last record shown. A cursor names no project, so it cannot lead into another one. */
export function encodeCursor(order: string, at: string, id: string): string {
  return Buffer.from(JSON.stringify([order, at, id]), "utf8").toString("base64url");
}

/** Returns whether a cursor was made for this order. */
export function isCursorOf(cursor: string, order: string): boolean {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"))[0] === order;
  } catch {
    return false; // refused when it is decoded
  }
}

export function decodeCursor(cursor: string, order: string): { at: string; id: string } {
  try {
    const [made, at, id] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (made === order && typeof at === "string" && typeof id === "string") return { at, id };
  } catch {
    // Not a cursor of ours: refused like the cursor of another order.
  }
  throw new CairnError("invalid_input", "Invalid cursor: use next_cursor of the previous page, with the same order.");
}
