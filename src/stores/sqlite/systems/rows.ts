import type { PortOffsets, PortPosition, StoredMessage } from "../../../model/system.ts";
import type { SqliteTx } from "../driver/driver.ts";

interface PortRow {
  component_name: string;
  port_name: string;
  first_offset: number;
  position: number;
  highest: number;
  pruned_to: number;
}

export function portsOf(tx: SqliteTx, component: string): PortOffsets[] {
  return tx.all<PortRow>("SELECT * FROM ports WHERE component_name = ? ORDER BY port_name", component).map((row) => ({
    ...toPosition(row),
    ahead: tx
      .all<{ offset: number }>(
        "SELECT offset FROM offsets_ahead WHERE component_name = ? AND port_name = ? ORDER BY offset",
        component,
        row.port_name,
      )
      .map(({ offset }) => offset),
  }));
}

function toPosition(row: PortRow): PortPosition {
  return { port: row.port_name, firstOffset: row.first_offset, position: row.position, highest: row.highest, prunedTo: row.pruned_to };
}

export function putPort(tx: SqliteTx, component: string, { port, firstOffset, position, highest, prunedTo }: PortPosition): void {
  tx.run(
    `INSERT INTO ports (component_name, port_name, first_offset, position, highest, pruned_to) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (component_name, port_name) DO UPDATE SET
       first_offset = excluded.first_offset, position = excluded.position, highest = excluded.highest, pruned_to = excluded.pruned_to`,
    component,
    port,
    firstOffset,
    position,
    highest,
    prunedTo,
  );
}

export function putAhead(tx: SqliteTx, component: string, port: string, offset: number): void {
  tx.run("INSERT INTO offsets_ahead (component_name, port_name, offset) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", component, port, offset);
}

export function putMessage(tx: SqliteTx, component: string, message: StoredMessage): void {
  tx.run(
    `INSERT INTO checkpoints (component_name, port_name, message_id, offset, timestamp, status, attempts, reason, data)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (component_name, port_name, message_id) DO UPDATE SET
       status = excluded.status, attempts = excluded.attempts, reason = excluded.reason`,
    component,
    message.port,
    message.id,
    message.offset,
    message.timestamp,
    message.status,
    message.attempts,
    message.reason,
    message.data,
  );
}

export function putState(tx: SqliteTx, component: string, key: string, value: Uint8Array): void {
  tx.run(
    "INSERT INTO state (component_name, key, value) VALUES (?, ?, ?) ON CONFLICT (component_name, key) DO UPDATE SET value = excluded.value",
    component,
    key,
    value,
  );
}
