import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";

/** One page of a fixed list, and where the next one starts. The cursor names its list, so that one of another list is refused. */
export function pageOf<T>(
  list: string,
  items: readonly T[],
  cursor: string | undefined,
  size: number,
): { items: T[]; nextCursor?: string } {
  const start = cursor === undefined ? 0 : startOf(list, cursor);
  const end = start + size;
  return { items: items.slice(start, end), ...(end < items.length && { nextCursor: encode(list, end) }) };
}

function encode(list: string, start: number): string {
  return Buffer.from(`${list}:${start}`, "utf8").toString("base64url");
}

function startOf(list: string, cursor: string): number {
  const [, start] = /:(\d{1,9})$/.exec(Buffer.from(cursor, "base64url").toString("utf8")) ?? [];
  if (start === undefined || encode(list, Number(start)) !== cursor)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "This cursor is not one that this list gave. Start again without a cursor.");
  return Number(start);
}
