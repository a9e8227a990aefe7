import { CairnError } from "../model/errors.ts";

/** Where a list goes on: the order it was made in, and the last record shown. It names no project, so it cannot lead into another. */
export function encodeCursor(order: string, at: string, id: string): string {
  return Buffer.from(JSON.stringify([order, at, id]), "utf8").toString("base64url");
}

export function decodeCursor(cursor: string, order: string): { at: string; id: string } {
  try {
    const [made, at, id] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (made === order && typeof at === "string" && typeof id === "string") return { at, id };
  } catch {
    // Not ours: the same answer as for one of another order.
  }
  throw new CairnError("invalid_input", "cursor: not one that this list gave for this order. Start again without a cursor.");
}
