import type { MessageHead, StoredMessage } from "../../model/system.ts";

/** The columns of a message without its data. */
export interface HeadRow {
  port_name: string;
  message_id: string;
  offset: number;
  timestamp: number;
  status: MessageHead["status"];
  attempts: number;
  reason: string | null;
}

/** A row of the inbox. */
export interface MessageRow extends HeadRow {
  component_name: string;
  data: Uint8Array | null;
}

export function toHead(row: HeadRow): MessageHead {
  return {
    port: row.port_name,
    id: row.message_id,
    offset: row.offset,
    timestamp: row.timestamp,
    status: row.status,
    attempts: row.attempts,
    reason: row.reason,
  };
}

export function toMessage(row: MessageRow): StoredMessage {
  return { ...toHead(row), data: row.data };
}
